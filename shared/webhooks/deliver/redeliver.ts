/** Sends a delivery again on a user's request. The retry plan of an ended delivery begins again, and that of a waiting one continues. */
import type { DeliveryQueue } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { all, equals, present } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Plan } from "#shared/db/plan.ts";
import { ApiError, notFound } from "#shared/errors.ts";
import { StoredDelivery } from "#shared/webhooks/delivery.ts";
import type { Queued } from "#shared/webhooks/delivery-schema.ts";
import { readLimiter } from "#shared/webhooks/limiter/limiter.ts";
import { messageFor } from "#shared/webhooks/messages.ts";

export async function redeliver(
  context: ApiContext,
  queue: DeliveryQueue,
  companyId: number,
  webhookId: number,
  deliveryId: string,
): Promise<Plan<Queued>> {
  const key = keys.delivery(companyId, webhookId, deliveryId);
  const webhookKey = keys.webhook(companyId, webhookId);
  const [item, webhook] = await Promise.all([context.table.get(key), context.table.get(webhookKey)]);
  if (item === undefined || webhook === undefined) throw notFound("delivery");
  const delivery = StoredDelivery.parse(item);
  const { registrationId } = delivery;
  const registration = registrationId === null ? [] : [keys.registration(companyId, webhookId, registrationId)];
  for (const wanted of registration) {
    if ((await context.table.get(wanted)) !== undefined) continue;
    if ((await context.table.get(webhookKey)) === undefined) throw notFound("delivery");
    throw new ApiError("conflict", "The registration of this delivery no longer exists.");
  }
  const now = iso(context.clock.now());
  const { slots } = await readLimiter(context, { companyId, webhookId });
  if (slots.some((slot) => slot.ids.includes(deliveryId) && slot.until > now)) {
    throw new ApiError("conflict", "This delivery is being sent at the moment.");
  }
  const { next, write } = dueAgain(delivery, now, now);
  const checks = [webhookKey, ...registration].map((check) => ({ check, when: present }));
  return {
    writes: [write, ...checks],
    answer: { deliveryId },
    after: () => queue.send([{ message: messageFor(next), delaySeconds: 0 }]).catch(() => undefined),
  };
}

/** Returns the delivery with a new due time, and the write for it, which fails if the delivery has changed since it was read. */
export function dueAgain(delivery: StoredDelivery, dueAt: string, now: string, replayId?: string) {
  const { id, companyId, webhookId } = delivery;
  const isOver = delivery.state === "delivered" || delivery.state === "exhausted";
  const attempt = isOver ? delivery.attempt + 1 : delivery.attempt;
  const planFrom = delivery.state === "waiting" ? delivery.planFrom : attempt;
  const due = { dueAt, dueShard: keys.dueShard(id), updatedAt: now };
  const set = { state: "waiting" as const, attempt, planFrom, ...due, replayId };
  const when = all(equals("state", delivery.state), equals("attempt", delivery.attempt));
  const write = { update: keys.delivery(companyId, webhookId, id), change: { set, remove: ["sweptAt"] }, when };
  const next: StoredDelivery = { ...delivery, ...set };
  return { next, write };
}
