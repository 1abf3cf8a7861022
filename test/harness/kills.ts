/**
 * Chooses the calls to AWS at which a test kills or disturbs the tested work. With TEST_SIZE=wide it chooses every call. Otherwise it
 * chooses a few calls, the same in each run.
 */
import { sized } from "./tier.ts";

/** Maximum number of calls of short work. Short work is killed at one call and at its last call, longer work at three calls. */
const SHORT_WORK = 50;
/** The distances between the calls that `killPoints` yields. They have no common divisor, so that no phase of repeated work is missed. */
const DISTANCES = [3, 8, 21, 34, 13, 29] as const;

const isWide = (): boolean => sized({ short: 0, wide: 1 }) === 1;

/** Yields an endless, ascending sequence of call numbers. Different values of `turn` begin at different distances. */
export function* spreadCalls(turn: number): Generator<number, never> {
  for (let call = 0, position = turn; ; position++) {
    call += DISTANCES[position % DISTANCES.length] ?? 1;
    yield call;
  }
}

/** Returns at most three numbers from 1 to `calls`, in ascending order. The last call is always one of them. */
export function spreadCallsOf(calls: number, turn: number): number[] {
  const parts = calls > SHORT_WORK ? 2 : 1;
  const starts = Array.from({ length: parts + 1 }, (_, part) => Math.floor(((calls - 1) * part) / parts));
  const points = starts.slice(0, -1).flatMap((start, part) => {
    const length = (starts[part + 1] ?? start) - start;
    return length > 0 ? [start + 1 + ((11 * turn + 3) % length)] : [];
  });
  return calls > 0 ? [...points, calls] : [];
}

/**
 * Yields an endless sequence of call numbers. At these calls, a test kills its work. The first call has the number 1. Several tests of the
 * same work pass different values of `turn`, so that they kill the work at different calls.
 */
export function* killPoints(turn: number): Generator<number, never> {
  if (!isWide()) return yield* spreadCalls(turn);
  for (let call = 1; ; call++) yield call;
}

/**
 * Returns the numbers of the calls at which a test kills its work, if the work makes `calls` calls. The first call has the number 1. The
 * last call is always one of them, because most work takes effect in it. `turn` has the same meaning as in `killPoints`.
 */
export function killPointsOf(calls: number, turn: number): number[] {
  return isWide() ? Array.from({ length: calls }, (_, i) => i + 1) : spreadCallsOf(calls, turn);
}
