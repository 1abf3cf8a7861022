/** Runs reconciliation in a test, and expects no fault. */
import { expect } from "vitest";
import { type Reconciliation, reconcile } from "#shared/webhooks/reconcile/reconcile.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";

interface Kept {
  readonly db: FaultyDynamoDb;
  readonly companyId: number;
  readonly clock: number;
}

/**
 * Runs reconciliation without its repeated checks. Outside tests, it checks each difference again, because a concurrent write can cause a
 * difference. In a test, nothing writes concurrently.
 */
export const reconcileNow = ({ db, companyId, clock }: Kept): Promise<Reconciliation> =>
  reconcile({ table: db.direct, clock: { now: () => clock } }, companyId, { again: 0, wait: () => Promise.resolve() });

/** Expects no fault and returns the counts. The message of a failed test contains `place`, for example the point of the kill. */
export async function expectReconciled(at: Kept, place?: string): Promise<Omit<Reconciliation, "faults">> {
  const { faults, ...counts } = await reconcileNow(at);
  expect(faults, place).toEqual([]);
  const { matched, delivered, waiting, exhausted, cancelled } = counts;
  expect(matched, place).toBe(delivered + waiting + exhausted + cancelled);
  return counts;
}
