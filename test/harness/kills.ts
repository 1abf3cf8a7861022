/** Chooses the calls at which a test kills or disturbs its work: every call in the wide test tier, one of seven calls in the short tier. */
import { sized } from "./tier.ts";

/** A function and not a constant, because test files of both tiers import this module. */
const step = (): number => sized({ short: 7, wide: 1 });

/** In the short tier, tests always kill the last two calls of the work, because most of the work takes effect in these calls. */
const LAST = 2;
/**
 * Distance between the first kill points of successive values of `turn`. It shares no factor with the step, so seven turns cover all calls.
 */
const STRIDE = 3;

/**
 * Endless numbers of calls, where the first call is 1. Tests of the same work pass different values of `turn`, so that they kill at
 * different calls.
 */
export function* killPoints(turn: number): Generator<number, never> {
  const distance = step();
  for (let call = 1 + ((turn * STRIDE) % distance); ; call += distance) yield call;
}

/** The kill points for work that makes this number of calls. */
export function killPointsOf(calls: number, turn: number): number[] {
  const distance = step();
  const all = Array.from({ length: calls }, (_, i) => i + 1);
  return all.filter((call) => (call - 1 - turn * STRIDE) % distance === 0 || call > calls - LAST);
}
