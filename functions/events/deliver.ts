/** The delivery queue -> one attempt per message. */
import { deliver } from "#shared/deliveries/deliver.ts";
import { DeliveryMessage } from "#shared/deliveries/schema.ts";
import { eventWorld } from "#shared/events/world.ts";
import { queueConsumer } from "#shared/queue-consumer.ts";

export const handler = queueConsumer(
  DeliveryMessage,
  ({ message, isRepeat }) => deliver(eventWorld(), message, isRepeat),
  (receiptHandle, seconds) => eventWorld().queue.returnIn(receiptHandle, seconds),
);
