/**
 * Makes the clock of a command run faster, as a time scale does for a local service. A test preloads this module (`node --import`). All
 * commands of one test compute their time from the same start time (`FAST_CLOCK_SINCE`), so they have the same time.
 */
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";

const [since, scale] = [Number(process.env.FAST_CLOCK_SINCE), Number(process.env.FAST_CLOCK_SCALE)];
const [realNow, realWait] = [Date.now, timers.setTimeout];

/**
 * A timer of at least this many milliseconds is divided by the time scale. A shorter timer keeps its real duration, because retries and
 * time-outs of requests use such timers, and the servers do not respond faster than usual.
 */
const LONG_MS = 60_000;

Date.now = () => since + (realNow() - since) * scale;
timers.setTimeout = (ms, ...rest) => realWait(ms !== undefined && ms >= LONG_MS ? ms / scale : ms, ...rest);
syncBuiltinESMExports();
