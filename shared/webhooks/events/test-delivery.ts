/** Sends the test of a webhook. It is not beside the actions, so that their functions do not load the samples. */
import { randomUUID } from "node:crypto";
import type { Caller } from "#shared/auth/caller.ts";
import type { DeliveryQueue } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, present } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Plan } from "#shared/db/plan.ts";
import { notFound } from "#shared/errors.ts";
import { getUser, userSummary } from "#shared/reference/users.ts";
import type { EventName } from "#shared/webhooks/catalogue.ts";
import { deliveryId, deliveryItem, newDelivery } from "#shared/webhooks/delivery.ts";
import type { Queued } from "#shared/webhooks/delivery-schema.ts";
import { sampleData } from "#shared/webhooks/events/samples.ts";
import { expectedPut } from "#shared/webhooks/expected-deliveries.ts";
import { enqueue } from "#shared/webhooks/messages.ts";
import { readWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";

/**
 * Sends a sample of an event to one webhook, whatever its registrations are. The delivery belongs to the first registration that names the
 * event. Throws `not_found` if the webhook does not exist.
 */
export async function sendTestDelivery(
  context: ApiContext,
  queue: DeliveryQueue,
  caller: Caller,
  webhookId: number,
  event: EventName,
): Promise<Plan<Queued>> {
  const { companyId, userId } = caller;
  const [{ webhook, registrations }, user] = await Promise.all([
    readWebhook(context, companyId, webhookId),
    getUser(context, companyId, userId),
  ]);
  const now = context.clock.now();
  const eventId = `test-${randomUUID()}`;
  const id = deliveryId(eventId, webhookId, iso(now));
  const registrationId = registrations.find((registration) => registration.event === event)?.id ?? null;
  const about = { id, companyId, webhookId, registrationId, event, eventId, createdAt: iso(now), dueMs: now };
  const delivery = newDelivery(
    { ...about, trigger: "manual", triggeredBy: userSummary(user) },
    JSON.stringify(sampleData(event, webhook)),
    { test: true },
  );
  return {
    writes: [
      { put: deliveryItem(delivery), when: absent },
      expectedPut(delivery),
      { check: keys.webhook(companyId, webhookId), when: present, orThrow: () => notFound("webhook") },
    ],
    answer: { deliveryId: id },
    // The sweeper sends a message for the delivery later, if the queue fails.
    after: () => enqueue({ queue, clock: context.clock }, [delivery]).catch(() => undefined),
  };
}
