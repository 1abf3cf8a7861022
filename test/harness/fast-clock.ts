/**
 * Makes the clock of a command run faster, as a time scale does for a local service. A test preloads this module (`node --import`). All
 * commands of one test compute their time from the same start time (`FAST_CLOCK_SINCE`), so they have the same time.
 */
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";

const [since, scale] = [Number(process.env.FAST_CLOCK_SINCE), Number(process.env.FAST_CLOCK_SCALE)];
const [realNow, realWait] = [Date.now, timers.setTimeout];

/**
 * Minimum milliseconds of a timer that is shortened. Retries and time-outs of requests use shorter timers. These keep their real duration,
 * because the servers are not faster than usual.
 */
const LONG_MS = 60_000;

Date.now = () => since + (realNow() - since) * scale;
timers.setTimeout = (ms, ...rest) => realWait(ms !== undefined && ms >= LONG_MS ? ms / scale : ms, ...rest);
syncBuiltinESMExports();
