/** Changes the states of deliveries by conditional writes, and says which deliveries of a batch are not finished. */
import { at } from "#shared/at.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { all, type Change, equals, type Item, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";

/** A delivery that a sender could not finish: it joined the throttled backlog, or a fault of the service has stopped its handling. */
export type Left =
  | { readonly id: string; readonly isThrottled: true }
  /** The queue must deliver the delivery's message again. */
  | { readonly id: string; readonly error: unknown };

/** Returns the deliveries that `work` could not finish, or all `deliveries` if it throws. The rest of the batch then still continues. */
export async function guarded(
  deliveries: readonly Pick<StoredDelivery, "id">[],
  work: () => Promise<readonly Left[]>,
): Promise<readonly Left[]> {
  try {
    return await work();
  } catch (error) {
    return deliveries.map(({ id }) => ({ id, error }));
  }
}

type Update = Extract<Write, { update: unknown }>;

/** Executes the update. Returns the new row, or undefined if the condition fails. */
export async function updateIf({ table }: Pick<EventContext, "table">, update: Update): Promise<Item | undefined> {
  try {
    return await table.write(update);
  } catch (error) {
    if (error instanceof ConditionFailed) return undefined;
    throw error;
  }
}

/** Returns the write that changes a delivery. Its condition fails if another sender has already finished this attempt. */
export const whilePending = ({ companyId, webhookId, id, attempt }: StoredDelivery, change: Change) => ({
  update: keys.delivery(companyId, webhookId, id),
  change,
  when: all(equals("state", "waiting"), equals("attempt", attempt)),
});

export const settled = (state: "delivered" | "exhausted" | "cancelled", nowMs: number): Change => ({
  set: { state, updatedAt: iso(nowMs) },
  remove: ["dueShard"],
});

export async function cancel({ table, clock }: EventContext, deliveries: readonly StoredDelivery[]): Promise<Left[]> {
  const change = settled("cancelled", clock.now());
  await updateEach(
    table,
    deliveries.map((delivery) => whilePending(delivery, change)),
  );
  return [];
}

const TRANSACTION_WRITES = 100;

/** Makes the updates, up to 100 in one transaction. Returns those whose conditions have failed. */
export async function updateEach<T extends Update>(table: Table, updates: readonly T[]): Promise<T[]> {
  const refused: T[] = [];
  let left = updates;
  while (left.length > 0) {
    const some = left.slice(0, TRANSACTION_WRITES);
    try {
      if (some.length === 1) await table.write(at(some, 0));
      else await table.transact(some);
      left = left.slice(some.length);
    } catch (error) {
      if (!(error instanceof ConditionFailed)) throw error;
      const failed = new Set(error.failed.map(({ index }) => index));
      refused.push(...some.filter((_, i) => failed.has(i)));
      left = left.filter((_, i) => !failed.has(i));
    }
  }
  return refused;
}
