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
 * Tests that kill the same work pass successive numbers (`turn`). Each number shifts the killed calls by this distance. 3 and 7 (the step)
 * have no common factor, so seven tests together kill at every call.
 */
const STRIDE = 3;

/**
 * Yields, without end, the numbers (from 1) of the calls at which a test kills its work. Tests of the same work pass different values of
 * `turn`, so that together they kill it at more calls.
 */
export function* killPoints(turn: number): Generator<number, never> {
  const distance = step();
  for (let call = 1 + ((turn * STRIDE) % distance); ; call += distance) yield call;
}

/** Returns the numbers (from 1) of the calls at which a test kills its work. The work makes `calls` calls. */
export function killPointsOf(calls: number, turn: number): number[] {
  const distance = step();
  const all = Array.from({ length: calls }, (_, i) => i + 1);
  return all.filter((call) => (call - 1 - turn * STRIDE) % distance === 0 || call > calls - LAST);
}
