/** At which calls a test kills or disturbs its work: in the long tier at each, else at one of a few, the rest by its neighbours. */
import { inject } from "vitest";

declare module "vitest" {
  export interface ProvidedContext {
    /** Of so many calls in a row one is struck. */
    readonly strikeOneOf: number;
  }
}

/** Numbers of calls, the first one being 1, without an end. Tests of the same work that are given other turns strike elsewhere. */
export function* strikes(turn: number): Generator<number, never> {
  const oneOf = inject("strikeOneOf");
  for (let call = 1 + (turn % oneOf); ; call += oneOf) yield call;
}

/** Those of a work that makes so many calls. */
export function strikesOf(calls: number, turn: number): number[] {
  const oneOf = inject("strikeOneOf");
  return Array.from({ length: calls }, (_, i) => i + 1).filter((call) => (call - 1 - turn) % oneOf === 0);
}
