/**
 * Chooses the calls at which a test kills or disturbs its work. `npm run test:wide` tests every call, and the other test commands only one
 * call in seven to save time.
 */
import { sized } from "./tier.ts";

/** A function instead of a constant, because the size depends on the test command, which the module does not know when it is loaded. */
const step = (): number => sized({ short: 7, wide: 1 });

/** If not every call is tested, the last two calls are always tested, because most of the work takes effect in them. */
const LAST = 2;
/**
 * Tests of the same work pass successive values of `turn`, and each value begins this many calls later. 3 and the step 7 have no common
 * factor, so seven values cover all calls.
 */
const STRIDE = 3;

/**
 * Yields the numbers of the calls to kill, without end. The first call is 1. Tests of the same work pass different values of `turn`, so
 * that together they kill different calls.
 */
export function* killPoints(turn: number): Generator<number, never> {
  const distance = step();
  for (let call = 1 + ((turn * STRIDE) % distance); ; call += distance) yield call;
}

/** Returns the calls to kill in work that makes this number of calls. */
export function killPointsOf(calls: number, turn: number): number[] {
  const distance = step();
  const all = Array.from({ length: calls }, (_, i) => i + 1);
  return all.filter((call) => (call - 1 - turn * STRIDE) % distance === 0 || call > calls - LAST);
}
