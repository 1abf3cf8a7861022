/** The delivery queue -> attempts, steps of releases and replays, looks at what waits at gates, parts of fan-outs. */

import { queueConsumer } from "#shared/queue-consumer.ts";
import { useKeyService } from "#shared/secrets/key-service.ts";
import { eventContext } from "#shared/webhooks/context.ts";
import { AnyMessage, consume } from "#shared/webhooks/deliver/consume.ts";

useKeyService();

export const handler = queueConsumer(
  AnyMessage,
  (batch) => consume(eventContext(), batch),
  (receiptHandle, seconds) => eventContext().queue.returnIn(receiptHandle, seconds),
);
