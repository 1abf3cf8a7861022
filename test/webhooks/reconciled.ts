/** The books of a company in the tests' hands: they balance and nothing is at fault, whatever was done to it. */
import { expect } from "vitest";
import { type Books, reconcile } from "#shared/webhooks/reconcile/reconcile.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";

interface Kept {
  readonly db: FaultyDynamoDb;
  readonly companyId: number;
  readonly clock: number;
}

/** While nothing changes, a single look tells. */
export const booksOf = ({ db, companyId, clock }: Kept): Promise<Books> =>
  reconcile({ table: db.direct, clock: { now: () => clock } }, companyId, { again: 0, wait: () => Promise.resolve() });

/** `place` names what was done. Gives the counts. */
export async function expectBalanced(at: Kept, place?: string): Promise<Omit<Books, "faults">> {
  const { faults, ...counts } = await booksOf(at);
  expect(faults, place).toEqual([]);
  const { matched, delivered, waiting, exhausted, cancelled } = counts;
  expect(matched, place).toBe(delivered + waiting + exhausted + cancelled);
  return counts;
}
