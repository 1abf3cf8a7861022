/**
 * Chooses the calls to AWS at which a test kills or disturbs the tested work. With TEST_SIZE=wide it chooses every call. Otherwise it
 * chooses a few calls, the same in each run. The first call has the number 1. Several tests of the same work pass different values of
 * `turn`, so that they kill the work at different calls.
 */
import { type Fault, type FaultPlan, pass, serverError } from "./faulty-dynamodb.ts";
import { sized } from "./tier.ts";

/** Maximum number of calls of short work. `killPointsOf` returns two calls of short work and three of longer work. */
const SHORT_WORK = 50;
/**
 * The distances between the calls that `killPoints` yields. They have no common divisor. If the work repeats the same calls again and
 * again, the kills therefore hit different ones of these calls.
 */
const DISTANCES = [3, 8, 21, 34, 13, 29] as const;

/** Yields an endless, ascending sequence of call numbers. */
export function* killPoints(turn: number): Generator<number, never> {
  for (let call = 0, position = turn; ; position++) {
    call += sized({ short: DISTANCES[position % DISTANCES.length] ?? 1, wide: 1 });
    yield call;
  }
}

/** Returns numbers of calls in ascending order. The last call is always one of them, because most work takes effect in it. */
export function killPointsOf(calls: number, turn: number): number[] {
  const all = Array.from({ length: calls }, (_, i) => i + 1);
  const parts = calls > SHORT_WORK ? 2 : 1;
  const length = Math.floor((calls - 1) / parts);
  const few = Array.from({ length: parts }, (_, part) => part * length + 1 + ((11 * turn + 3) % Math.max(1, length)));
  return sized({ wide: all, short: calls > 1 ? [...few, calls] : all });
}

/** The two moments at which a process can be killed at a call, with their fault: before and after the call takes effect. */
export const deaths = [
  ["before", serverError],
  ["after", { kind: "lose reply" }],
] satisfies [string, Fault][];

/** Returns a plan with which call number `last` and all later calls fail, as if the process had been killed at call number `last`. */
export const killedAt =
  (last: number, death: Fault = serverError): FaultPlan =>
  (_operation, number) =>
    number < last ? pass : number === last ? death : serverError;
