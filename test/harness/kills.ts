/** At which calls a test kills or disturbs its work: in the wide tier at each, else at one of a few, the rest by its neighbours. */
import { sized } from "./tier.ts";

/** Not a constant: files of both tiers may share this module. */
const oneOf = (): number => sized({ short: 7, wide: 1 });

const LAST = 2;
/** Between the first calls of two turns: coprime to the step, so that seven turns strike at seven places. */
const STRIDE = 3;

/** Numbers of calls, the first one being 1, without an end. Tests of the same work that are given other turns strike elsewhere. */
export function* strikes(turn: number): Generator<number, never> {
  const step = oneOf();
  for (let call = 1 + ((turn * STRIDE) % step); ; call += step) yield call;
}

/** Those of a work that makes so many calls, and its last ones: there most of it takes effect. */
export function strikesOf(calls: number, turn: number): number[] {
  const step = oneOf();
  const all = Array.from({ length: calls }, (_, i) => i + 1);
  return all.filter((call) => (call - 1 - turn * STRIDE) % step === 0 || call > calls - LAST);
}
