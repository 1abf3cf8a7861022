/** Tries out a webhook: one delivery of its own, made and sent like all others. */
import { randomUUID } from "node:crypto";
import type { Caller } from "#shared/auth/caller.ts";
import type { DeliveryQueue } from "#shared/aws/queue.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, present } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { failedAt, notFound } from "#shared/errors.ts";
import { getUser, userSummary } from "#shared/reference/users.ts";
import { deliveryItem, messageFor } from "#shared/webhooks/delivery.ts";
import { deliveryId } from "#shared/webhooks/delivery-id.ts";
import type { Queued } from "#shared/webhooks/delivery-log-schema.ts";
import { catalogue } from "#shared/webhooks/events/catalogue.ts";
import { ledgerPut } from "#shared/webhooks/expected-deliveries.ts";
import { newDelivery } from "#shared/webhooks/new-delivery.ts";
import { getWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";

/** Should the message be lost, the sweeper finds the delivery. Throws not_found. */
export async function tryOut(
  context: ApiContext,
  queue: DeliveryQueue,
  caller: Caller,
  webhookId: number,
): Promise<Queued> {
  const { companyId, userId } = caller;
  const [{ id: ownId, name }, user] = await Promise.all([
    getWebhook(context, companyId, webhookId),
    getUser(context, companyId, userId),
  ]);
  const now = context.clock.now();
  const event = "webhook.test";
  const eventId = `test-${randomUUID()}`;
  const id = deliveryId(eventId, webhookId, iso(now));
  const occasion = { id, companyId, webhookId, registrationId: null, event, eventId, createdAt: iso(now), dueMs: now };
  const data = catalogue[event].parse({ webhook: { id: ownId, name } });
  const delivery = newDelivery(
    { ...occasion, trigger: "manual", triggeredBy: userSummary(user) },
    JSON.stringify(data),
  );
  const isThere = { check: keys.webhook(companyId, webhookId), when: present };
  const writes = [{ put: deliveryItem(delivery), when: absent }, ledgerPut(delivery), isThere];
  await context.commit(writes, { deliveryId: id }).catch((error: unknown) => {
    throw failedAt(error, writes.indexOf(isThere)) === undefined ? error : notFound("webhook");
  });
  await queue.send([{ message: messageFor(delivery), delaySeconds: 0 }]).catch(() => undefined);
  return { deliveryId: id };
}
