/** A paused webhook keeps its deliveries: they wait apart from what is due, in the order of time, until they are released. */

import { delaySecondsUntil } from "#shared/aws/queue.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { all, equals } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { messageFor } from "#shared/webhooks/delivery.ts";
import { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

/**
 * Puts the delivery aside. Its webhook may have been resumed since it was seen paused, and those who release may have looked
 * already: so the webhook is looked at once more, and if it is active the delivery goes on by itself.
 */
export async function hold(context: EventContext, delivery: StoredDelivery): Promise<void> {
  const { companyId, webhookId, id, attempt } = delivery;
  const held = { dueShard: keys.heldShard(companyId, webhookId), updatedAt: iso(context.clock.now()) };
  const when = all(equals("state", "waiting"), equals("attempt", attempt));
  const write = {
    update: keys.delivery(companyId, webhookId, id),
    change: { set: held },
    when,
  };
  try {
    await context.table.write(write);
  } catch (error) {
    if (error instanceof ConditionFailed) return;
    throw error;
  }
  if (await isActive(context.table, companyId, webhookId)) await letGo(context, delivery, context.clock.now());
}

async function isActive(table: Table, companyId: number, webhookId: number): Promise<boolean> {
  const item = await table.get(keys.webhook(companyId, webhookId));
  // Of a webhook that is gone nothing is kept: the delivery is cancelled when its turn comes.
  return item === undefined || StoredWebhook.parse(item).status === "active";
}

/** Makes a held delivery due at `dueMs` and queues it. One that is not held any more is left alone. */
export async function letGo(context: EventContext, delivery: StoredDelivery, dueMs: number): Promise<void> {
  const { companyId, webhookId, id } = delivery;
  const due = { dueShard: keys.dueShard(id), dueAt: iso(Math.max(dueMs, Date.parse(delivery.dueAt))) };
  const when = all(equals("state", "waiting"), equals("dueShard", keys.heldShard(companyId, webhookId)));
  const key = keys.delivery(companyId, webhookId, id);
  try {
    await context.table.write({ update: key, change: { set: due, remove: ["sweptAt"] }, when });
  } catch (error) {
    if (error instanceof ConditionFailed) return;
    throw error;
  }
  const delaySeconds = delaySecondsUntil(Date.parse(due.dueAt), context.clock.now());
  await context.queue.send([{ message: messageFor(delivery), delaySeconds }]);
}
