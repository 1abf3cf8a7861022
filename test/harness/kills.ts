/** The calls at which a test kills or disturbs its work: every call in the wide tier, one of seven in the short tier. */
import { sized } from "./tier.ts";

/** A function, since test files of both tiers import this module. */
const step = (): number => sized({ short: 7, wide: 1 });

/** The short tier also kills the last calls of a work: most of it takes effect there. */
const LAST = 2;
/** Distance between the first kill points of two turns. It shares no factor with the step, so seven turns cover all calls. */
const STRIDE = 3;

/** Endless numbers of calls; the first call is 1. Tests of the same work pass different turns and so kill at different calls. */
export function* killPoints(turn: number): Generator<number, never> {
  const distance = step();
  for (let call = 1 + ((turn * STRIDE) % distance); ; call += distance) yield call;
}

/** The kill points of a work that makes this number of calls. */
export function killPointsOf(calls: number, turn: number): number[] {
  const distance = step();
  const all = Array.from({ length: calls }, (_, i) => i + 1);
  return all.filter((call) => (call - 1 - turn * STRIDE) % distance === 0 || call > calls - LAST);
}
