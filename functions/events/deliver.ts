/**
 * Consumes the delivery queue. A message asks for one attempt of a delivery, for one step of draining a webhook's backlog, or for one part
 * of fanning an event out to many subscriptions.
 */
import { queueConsumer } from "#shared/queue-consumer.ts";
import { useKeyService } from "#shared/secrets/key-service.ts";
import { eventContext } from "#shared/webhooks/context.ts";
import { consume } from "#shared/webhooks/deliver/consume.ts";
import { QueueMessage } from "#shared/webhooks/messages.ts";

useKeyService();

export const handler = queueConsumer(
  QueueMessage,
  (batch) => consume(eventContext(), batch),
  (receiptHandle, seconds) => eventContext().queue.returnIn(receiptHandle, seconds),
);
