/** The delivery queue -> one attempt per message, one step of a release or replay, or a look at what waits at a gate. */
import { AnyMessage, consume } from "#shared/deliveries/consume.ts";
import { eventWorld } from "#shared/events/world.ts";
import { queueConsumer } from "#shared/queue-consumer.ts";

export const handler = queueConsumer(
  AnyMessage,
  ({ message, isRepeat }) => consume(eventWorld(), message, isRepeat),
  (receiptHandle, seconds) => eventWorld().queue.returnIn(receiptHandle, seconds),
);
