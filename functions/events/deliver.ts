/**
 * Handles the messages of the delivery queue. A message asks for one of three things: an attempt of a webhook delivery, the next step of
 * sending the waiting or replayed deliveries of a webhook, or the next deliveries of an event with many subscriptions.
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
