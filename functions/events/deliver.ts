/**
 * Consumes the delivery queue. A message asks for an attempt of a delivery, for the next step of sending the deliveries that wait or are
 * replayed for a webhook, or for the next part of the deliveries of an event with many subscriptions.
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
