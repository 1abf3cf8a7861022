/** The delivery queue -> one attempt per message, or one step of a release. */
import * as z from "zod/mini";
import { deliver } from "#shared/deliveries/deliver.ts";
import { release } from "#shared/deliveries/release.ts";
import { DeliveryMessage, ReleaseMessage } from "#shared/deliveries/schema.ts";
import { eventWorld } from "#shared/events/world.ts";
import { queueConsumer } from "#shared/queue-consumer.ts";

export const handler = queueConsumer(
  z.union([DeliveryMessage, ReleaseMessage]),
  ({ message, isRepeat }) =>
    "release" in message ? release(eventWorld(), message) : deliver(eventWorld(), message, isRepeat),
  (receiptHandle, seconds) => eventWorld().queue.returnIn(receiptHandle, seconds),
);
