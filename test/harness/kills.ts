/**
 * Chooses the calls to AWS at which a test kills or disturbs the tested work. `npm run test:wide` chooses every call. The other test
 * commands choose only a few calls, to save time. They choose different calls in each run, so that many runs together test all calls.
 */
import { createHash } from "node:crypto";
import { inject } from "vitest";
import { sized } from "./tier.ts";

/**
 * Maximum number of calls of short work. Short work is killed at one random call and at its last call. Longer work is killed at one random
 * call in each half and at its last call.
 */
const SHORT_WORK = 15;
/**
 * The mean difference between two consecutive numbers that `drawnCalls` yields. The first number is at most `FIRST`, because the work may
 * have only a few calls.
 */
const MEAN_DISTANCE = 25;
const FIRST = 11;

/**
 * Returns a number from 1 to `max` that looks random. The same `draw` (the random number of a test run), `turn` (see `killPoints`) and
 * `position` always give the same number.
 */
function drawn(draw: number, turn: number, position: number, max: number): number {
  return 1 + (createHash("sha256").update(`${draw} ${turn} ${position}`).digest().readUInt32BE() % max);
}

/** Yields an endless, ascending sequence of call numbers. At these calls, a test run with the random number `draw` kills the work. */
export function* drawnCalls(draw: number, turn: number): Generator<number, never> {
  for (let call = 0, position = 0; ; position++) {
    call += drawn(draw, turn, position, position === 0 ? FIRST : 2 * MEAN_DISTANCE - 1);
    yield call;
  }
}

/** Chooses numbers from 1 to `calls`, for a test run with the random number `draw`. The last call is always one of them. */
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
 * Yields an endless sequence of call numbers. At these calls, a test kills its work. The first call has the number 1. Several tests of the
 * same work pass different values of `turn`, so that they kill the work at different calls.
 */
export function* killPoints(turn: number): Generator<number, never> {
  if (!isWide()) return yield* drawnCalls(inject("draw"), turn);
  for (let call = 1; ; call++) yield call;
}

/**
 * Returns the numbers of the calls at which a test kills its work, if the work makes `calls` calls. The first call has the number 1. The
 * last call is always one of them, because most work takes effect in it. `turn` has the same meaning as in `killPoints`.
 */
export function killPointsOf(calls: number, turn: number): number[] {
  return isWide() ? Array.from({ length: calls }, (_, i) => i + 1) : drawnCallsOf(inject("draw"), calls, turn);
}
