/** Which condition is dropped in this process of a copy, and which ones were sent. In a copy, each condition has a number. */
import type { Condition } from "#shared/db/expression.ts";

export const dropping = {
  number: Number.NaN,
  /** The numbers of the conditions that were sent since the set was cleared. */
  sent: new Set<number>(),
};
/** A ConditionCheck of DynamoDB must have a condition. A dropped condition is therefore replaced by one that always holds. */
const HOLDS: Condition = {
  op: "OR",
  parts: [
    { op: "missing", field: "pk" },
    { op: "exists", field: "pk" },
  ],
};
const numbers = new WeakMap<Condition, readonly number[]>();

export function numbered(number: number, condition: Condition | undefined): Condition | undefined {
  if (condition === undefined) return undefined;
  const copy = { ...condition };
  numbers.set(copy, [...(numbers.get(condition) ?? []), number]);
  return copy;
}

export const numberedAll = (number: number, conditions: readonly Condition[]) =>
  conditions.map((condition) => numbered(number, condition));

/** Returns what is sent instead of a condition. */
export function sent(condition: Condition): Condition {
  const own = numbers.get(condition) ?? [];
  for (const number of own) dropping.sent.add(number);
  return own.includes(dropping.number) ? HOLDS : condition;
}
