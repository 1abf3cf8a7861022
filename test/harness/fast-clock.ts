/**
 * Makes the clock of a command run faster, as the clock of a local service with a time scale does. A test preloads this module (`node
 * --import`). All commands of one test share the time at which the faster clock began, so they agree on the time.
 */
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";

const [since, scale] = [Number(process.env.FAST_CLOCK_SINCE), Number(process.env.FAST_CLOCK_SCALE)];
const [realNow, realWait] = [Date.now, timers.setTimeout];

/**
 * Milliseconds from which on a timer is shortened. Shorter timers are for retries and time-outs of calls. They keep their real time,
 * because the servers are not faster than usual.
 */
const LONG_MS = 60_000;

Date.now = () => since + (realNow() - since) * scale;
timers.setTimeout = (ms, ...rest) => realWait(ms !== undefined && ms >= LONG_MS ? ms / scale : ms, ...rest);
syncBuiltinESMExports();
