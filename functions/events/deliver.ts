/** The deliverer, which handles the messages of the delivery queue (shared/webhooks/messages.ts). */
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
