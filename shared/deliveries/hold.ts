/** A paused webhook keeps its deliveries: they wait apart from what is due, in the order of time, until they are released. */
import { iso } from "#shared/clock.ts";
import { ConditionFailed } from "#shared/db/errors.ts";
import { all, equals } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import type { StoredDelivery } from "#shared/deliveries/schema.ts";
import { messageFor } from "#shared/deliveries/schema.ts";
import type { EventWorld } from "#shared/events/world.ts";
import { delaySecondsUntil } from "#shared/queue.ts";
import { StoredWebhook } from "#shared/webhooks/schema.ts";

/**
 * Puts the delivery aside. Its webhook may have been resumed since it was seen paused, and those who release may have looked
 * already: so the webhook is looked at once more, and if it is active the delivery goes on by itself.
 */
export async function hold(world: EventWorld, delivery: StoredDelivery): Promise<void> {
  const { companyId, webhookId, id, attempt } = delivery;
  const held = { dueShard: keys.heldShard(companyId, webhookId), updatedAt: iso(world.clock.now()) };
  const when = all(equals("state", "waiting"), equals("attempt", attempt));
  const write = {
    update: keys.delivery(companyId, webhookId, id),
    change: { set: held },
    when,
  };
  try {
    await world.table.write(write);
  } catch (error) {
    if (error instanceof ConditionFailed) return;
    throw error;
  }
  if (await isActive(world.table, companyId, webhookId)) await letGo(world, delivery, world.clock.now());
}

async function isActive(table: Table, companyId: number, webhookId: number): Promise<boolean> {
  const item = await table.get(keys.webhook(companyId, webhookId));
  // Of a webhook that is gone nothing is kept: the delivery is cancelled when its turn comes.
  return item === undefined || StoredWebhook.parse(item).status === "active";
}

/** Makes a held delivery due at `dueMs` and queues it. One that is not held any more is left alone. */
export async function letGo(world: EventWorld, delivery: StoredDelivery, dueMs: number): Promise<void> {
  const { companyId, webhookId, id } = delivery;
  const due = { dueShard: keys.dueShard(id), dueAt: iso(Math.max(dueMs, Date.parse(delivery.dueAt))) };
  const when = all(equals("state", "waiting"), equals("dueShard", keys.heldShard(companyId, webhookId)));
  const key = keys.delivery(companyId, webhookId, id);
  try {
    await world.table.write({ update: key, change: { set: due, remove: ["sweptAt"] }, when });
  } catch (error) {
    if (error instanceof ConditionFailed) return;
    throw error;
  }
  const delaySeconds = delaySecondsUntil(Date.parse(due.dueAt), world.clock.now());
  await world.queue.send([{ message: messageFor(delivery), delaySeconds }]);
}
