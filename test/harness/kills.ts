/**
 * Chooses the calls to AWS at which a test kills or disturbs the tested work. `npm run test:wide` tests every call. The other test commands
 * test only one call in eleven, to save time.
 */
import { sized } from "./tier.ts";

/** Returns the distance between two killed calls. This is a function, because the module is loaded before the test command is known. */
const step = (): number => sized({ short: 11, wide: 1 });

/** `killPointsOf` always includes the last two calls, because most of the work takes effect in them. */
const LAST = 2;
/**
 * Several tests kill the same work. Each of them passes another number as `turn`, which shifts its killed calls by this many calls. 3 and 11
 * (the usual step) have no common factor, so eleven tests together kill at every call.
 */
const STRIDE = 3;

/**
 * Yields, without end, the numbers (from 1) of the calls at which a test kills its work. Tests of the same work pass different values of
 * `turn`, so that they kill it at different calls.
 */
export function* killPoints(turn: number): Generator<number, never> {
  const distance = step();
  for (let call = 1 + ((turn * STRIDE) % distance); ; call += distance) yield call;
}

/**
 * Returns the numbers (from 1) of the calls at which a test kills its work. The work makes `calls` calls. `turn` is explained at
 * `killPoints`.
 */
export function killPointsOf(calls: number, turn: number): number[] {
  const distance = step();
  const all = Array.from({ length: calls }, (_, i) => i + 1);
  return all.filter((call) => (call - 1 - turn * STRIDE) % distance === 0 || call > calls - LAST);
}
