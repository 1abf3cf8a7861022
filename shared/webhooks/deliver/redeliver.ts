/** Sends a delivery again by hand: the same body under the same id, with a whole plan of retries before it. */

import type { DeliveryQueue } from "#shared/aws/queue.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { all, equals, present } from "#shared/db/expression.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import { gateKeys } from "#shared/db/limiter-keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import { ApiError, notFound } from "#shared/errors.ts";
import { messageFor, StoredDelivery } from "#shared/webhooks/delivery.ts";
import type { Queued } from "#shared/webhooks/delivery-log-schema.ts";
import { slotsIn } from "#shared/webhooks/limiter/limiter.ts";

/**
 * One that waits is due at once. Should the message be lost, the sweeper finds the delivery. Throws conflict where its
 * registration is gone or a sender has it in hands, and not_found where its webhook is. Both still exist when it commits.
 */
export function redeliver(
  context: ApiContext,
  queue: DeliveryQueue,
  companyId: number,
  webhookId: number,
  deliveryId: string,
): Promise<Queued> {
  const key = keys.delivery(companyId, webhookId, deliveryId);
  return optimistic(async () => {
    const webhookKey = keys.webhook(companyId, webhookId);
    const [item, webhook] = await Promise.all([context.table.get(key), context.table.get(webhookKey)]);
    if (item === undefined || webhook === undefined) throw notFound("delivery");
    const delivery = StoredDelivery.parse(item);
    const registration = registrationOf(delivery);
    if (registration !== undefined && (await context.table.get(registration)) === undefined) {
      // A webhook that was deleted since took its registrations with it.
      if ((await context.table.get(webhookKey)) === undefined) throw notFound("delivery");
      throw new ApiError("conflict", "The registration of this delivery is gone.");
    }
    const now = iso(context.clock.now());
    const gate = await context.table.get(gateKeys.gate(companyId, webhookId));
    if (slotsIn(gate ?? {}).some((slot) => slot.ids.includes(deliveryId) && slot.until > now)) {
      throw new ApiError("conflict", "This delivery is being sent at the moment.");
    }
    const { next, write } = dueAgain(delivery, now, now);
    const wanted = [webhookKey, ...(registration === undefined ? [] : [registration])];
    await context.commit([write, ...wanted.map((check) => ({ check, when: present }))], { deliveryId });
    await queue.send([{ message: messageFor(next), delaySeconds: 0 }]).catch(() => undefined);
    return { deliveryId };
  });
}

/** Undefined: nobody registered for it. */
const registrationOf = ({ companyId, webhookId, registrationId }: StoredDelivery): Key | undefined =>
  registrationId === null ? undefined : keys.registration(companyId, webhookId, registrationId);

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
