/**
 * Chooses the calls to AWS at which a test kills or disturbs the tested work. `npm run test:wide` tests every call. The other test commands
 * test a few calls, to save time. They are other calls in each run, so that all calls are tested over many runs.
 */
import { createHash } from "node:crypto";
import { inject } from "vitest";
import { sized } from "./tier.ts";

/** Work with at most this many calls is killed at one drawn call, and longer work at one in each half. */
const SHORT_WORK = 15;
/** The mean distance of the calls that `drawnCalls` yields. The first of them is among the first `FIRST` calls, because work may be short. */
const MEAN_DISTANCE = 25;
const FIRST = 11;

/** Draws a number from 1 to `max`. The same draw, turn and position give the same number. */
function drawn(draw: number, turn: number, position: number, max: number): number {
  return 1 + (createHash("sha256").update(`${draw} ${turn} ${position}`).digest().readUInt32BE() % max);
}

/** Yields, without end, the numbers of calls that a run with this draw chooses. */
export function* drawnCalls(draw: number, turn: number): Generator<number, never> {
  for (let call = 0, position = 0; ; position++) {
    call += drawn(draw, turn, position, position === 0 ? FIRST : 2 * MEAN_DISTANCE - 1);
    yield call;
  }
}

/** Returns the numbers of the calls that a run with this draw chooses from `calls` calls. The last call is always one of them. */
export function drawnCallsOf(draw: number, calls: number, turn: number): number[] {
  const parts = calls > SHORT_WORK ? 2 : 1;
  const starts = Array.from({ length: parts + 1 }, (_, part) => Math.floor(((calls - 1) * part) / parts));
  const points = starts.slice(0, -1).flatMap((start, part) => {
    const length = (starts[part + 1] ?? start) - start;
    return length > 0 ? [start + drawn(draw, turn, part, length)] : [];
  });
  return calls > 0 ? [...points, calls] : [];
}

const isWide = (): boolean => sized({ short: 0, wide: 1 }) === 1;

/**
 * Yields, without end, the numbers (from 1) of the calls at which a test kills its work. Tests of the same work pass different values of
 * `turn`, so that they kill it at different calls.
 */
export function* killPoints(turn: number): Generator<number, never> {
  if (!isWide()) return yield* drawnCalls(inject("draw"), turn);
  for (let call = 1; ; call++) yield call;
}

/**
 * Returns the numbers (from 1) of the calls at which a test kills its work. The work makes `calls` calls. The last call is always one of
 * them, because most of the work takes effect in it. `turn` is explained at `killPoints`.
 */
export function killPointsOf(calls: number, turn: number): number[] {
  return isWide() ? Array.from({ length: calls }, (_, i) => i + 1) : drawnCallsOf(inject("draw"), calls, turn);
}
