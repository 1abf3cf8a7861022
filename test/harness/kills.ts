/** Chooses the calls, counted from 1, at which a test kills its work: all with TEST_SIZE=wide, otherwise a few that depend on `turn`. */
import { type Fault, type FaultPlan, pass, serverError } from "./faulty-dynamodb.ts";
import { sized } from "./tier.ts";

/** Work with at most this many calls is short: `killPointsOf` returns two calls of it, and three calls of longer work. */
const SHORT_WORK = 50;
/**
 * Numbers of calls between two kills. With equal numbers, work that repeats a cycle of calls could be killed at the same call each time.
 */
const DISTANCES = [3, 8, 21, 34, 13, 29] as const;

export function* killPoints(turn: number): Generator<number, never> {
  for (let call = 0, position = turn; ; position++) {
    call += sized({ short: DISTANCES[position % DISTANCES.length] ?? 1, wide: 1 });
    yield call;
  }
}

/** Returns the calls at which to kill the work, ascending. The last call is always among them, because most work takes effect in it. */
export function killPointsOf(calls: number, turn: number): number[] {
  const all = Array.from({ length: calls }, (_, i) => i + 1);
  const parts = calls > SHORT_WORK ? 2 : 1;
  const length = Math.floor((calls - 1) / parts);
  const few = Array.from({ length: parts }, (_, part) => part * length + 1 + ((11 * turn + 3) % Math.max(1, length)));
  return sized({ wide: all, short: calls > 1 ? [...few, calls] : all });
}

/** The two moments of a kill, before and after the call takes effect, each with the fault that simulates it. */
export const deaths = [
  ["before", serverError],
  ["after", { kind: "lose reply" }],
] satisfies [string, Fault][];

/** Returns a plan with which call number `last` and all later calls fail, as if the process had been killed at call number `last`. */
export const killedAt =
  (last: number, death: Fault = serverError): FaultPlan =>
  (_operation, number) =>
    number < last ? pass : number === last ? death : serverError;
