/** The delivery queue -> attempts, steps of releases and replays, looks at what waits at gates, parts of fan-outs. */
import { AnyMessage, consume } from "#shared/deliveries/consume.ts";
import { eventWorld } from "#shared/events/world.ts";
import { queueConsumer } from "#shared/queue-consumer.ts";
import { useKeyService } from "#shared/secrets/key-service.ts";

useKeyService();

export const handler = queueConsumer(
  AnyMessage,
  (batch) => consume(eventWorld(), batch),
  (receiptHandle, seconds) => eventWorld().queue.returnIn(receiptHandle, seconds),
);
