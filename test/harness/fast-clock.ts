/**
 * `node --import` of this file makes the clock of a command run faster. The clocks of a test's commands all begin at `FAST_CLOCK_SINCE`.
 */
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";

const [since, scale] = [Number(process.env.FAST_CLOCK_SINCE), Number(process.env.FAST_CLOCK_SCALE)];
const [realNow, realWait] = [Date.now, timers.setTimeout];

/** Timers below this limit keep their real duration, because retries and time-outs wait for servers, which are not faster than usual. */
const LONG_MS = 60_000;

Date.now = () => since + (realNow() - since) * scale;
timers.setTimeout = (ms, ...rest) => realWait(ms !== undefined && ms >= LONG_MS ? ms / scale : ms, ...rest);
syncBuiltinESMExports();
