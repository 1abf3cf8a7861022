/** Sends a delivery again by hand: the same body under the same id, with a whole plan of retries before it. */

import { iso } from "#shared/clock.ts";
import { all, equals } from "#shared/db/expression.ts";
import { gateKeys } from "#shared/db/gate-keys.ts";
import { keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import type { Table } from "#shared/db/table.ts";
import { slotsIn } from "#shared/deliveries/gate.ts";
import type { Queued } from "#shared/deliveries/log-schema.ts";
import { messageFor, StoredDelivery } from "#shared/deliveries/schema.ts";
import { ApiError, notFound } from "#shared/http/problem.ts";
import type { DeliveryQueue } from "#shared/queue.ts";
import type { World } from "#shared/world.ts";

/**
 * One that waits is due at once. Should the message be lost, the sweeper finds the delivery. Throws conflict where its
 * registration is gone or a sender has it in hands.
 */
export function redeliver(
  world: World,
  queue: DeliveryQueue,
  companyId: number,
  webhookId: number,
  deliveryId: string,
): Promise<Queued> {
  const key = keys.delivery(companyId, webhookId, deliveryId);
  return optimistic(async () => {
    const item = await world.table.get(key);
    if (item === undefined) throw notFound("delivery");
    const delivery = StoredDelivery.parse(item);
    if (!(await isRegistered(world.table, delivery))) {
      throw new ApiError("conflict", "The registration of this delivery is gone.");
    }
    const now = iso(world.clock.now());
    const gate = await world.table.get(gateKeys.gate(companyId, webhookId));
    if (slotsIn(gate ?? {}).some((slot) => slot.ids.includes(deliveryId) && slot.until > now)) {
      throw new ApiError("conflict", "This delivery is being sent at the moment.");
    }
    const { next, write } = dueAgain(delivery, now, now);
    await world.commit([write], { deliveryId });
    await queue.send([{ message: messageFor(next), delaySeconds: 0 }]).catch(() => undefined);
    return { deliveryId };
  });
}

/** Is the registration that asked for it still there? What nobody registered for needs none. */
async function isRegistered(table: Table, delivery: StoredDelivery): Promise<boolean> {
  const { companyId, webhookId, registrationId } = delivery;
  if (registrationId === null) return true;
  return (await table.get(keys.registration(companyId, webhookId, registrationId))) !== undefined;
}

/**
 * Makes a delivery due once more, unless somebody changes it meanwhile. An attempt that was made keeps its number. One that is
 * being sent goes on: its sender plans what comes next.
 */
export function dueAgain(delivery: StoredDelivery, dueAt: string, now: string, replayId?: string) {
  const { id, companyId, webhookId } = delivery;
  const isOver = delivery.state === "delivered" || delivery.state === "exhausted";
  const attempt = isOver ? delivery.attempt + 1 : delivery.attempt;
  const planFrom = delivery.state === "waiting" ? delivery.planFrom : attempt;
  const due = { dueAt, dueShard: keys.dueShard(id), updatedAt: now };
  const set = { state: "waiting" as const, attempt, planFrom, ...due, ...(replayId !== undefined && { replayId }) };
  const when = all(equals("state", delivery.state), equals("attempt", delivery.attempt));
  const write = { update: keys.delivery(companyId, webhookId, id), change: { set, remove: ["sweptAt"] }, when };
  const next: StoredDelivery = { ...delivery, ...set };
  return { next, write };
}
