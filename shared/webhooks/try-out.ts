/** Tries out a webhook: one delivery of its own, made and sent like all others. */
import { randomUUID } from "node:crypto";
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { failedAt } from "#shared/db/errors.ts";
import { absent, present } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { deliveryId } from "#shared/deliveries/identity.ts";
import { ledgerPut } from "#shared/deliveries/ledger.ts";
import type { Queued } from "#shared/deliveries/log-schema.ts";
import { newDelivery } from "#shared/deliveries/new-delivery.ts";
import { deliveryItem, messageFor } from "#shared/deliveries/schema.ts";
import { catalogue } from "#shared/events/catalogue.ts";
import { notFound } from "#shared/http/problem.ts";
import type { DeliveryQueue } from "#shared/queue.ts";
import { getUser, userSummary } from "#shared/users/users.ts";
import { getWebhook } from "#shared/webhooks/webhooks.ts";
import type { World } from "#shared/world.ts";

/** Should the message be lost, the sweeper finds the delivery. Throws not_found. */
export async function tryOut(world: World, queue: DeliveryQueue, caller: Caller, webhookId: number): Promise<Queued> {
  const { companyId, userId } = caller;
  const [{ id: ownId, name }, user] = await Promise.all([
    getWebhook(world, companyId, webhookId),
    getUser(world, companyId, userId),
  ]);
  const now = world.clock.now();
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
  await world.commit(writes, { deliveryId: id }).catch((error: unknown) => {
    throw failedAt(error, writes.indexOf(isThere)) === undefined ? error : notFound("webhook");
  });
  await queue.send([{ message: messageFor(delivery), delaySeconds: 0 }]).catch(() => undefined);
  return { deliveryId: id };
}
