/** The delivery queue -> one attempt per message, one step of a release, or a look at what waits at a gate. */
import * as z from "zod/mini";
import { look } from "#shared/deliveries/backlog.ts";
import { deliver } from "#shared/deliveries/deliver.ts";
import { release } from "#shared/deliveries/release.ts";
import { DeliveryMessage, LookMessage, ReleaseMessage } from "#shared/deliveries/schema.ts";
import { eventWorld } from "#shared/events/world.ts";
import { queueConsumer } from "#shared/queue-consumer.ts";

export const handler = queueConsumer(
  z.union([DeliveryMessage, ReleaseMessage, LookMessage]),
  ({ message, isRepeat }) => {
    if ("release" in message) return release(eventWorld(), message);
    if ("look" in message) return look(eventWorld(), message);
    return deliver(eventWorld(), message, isRepeat);
  },
  (receiptHandle, seconds) => eventWorld().queue.returnIn(receiptHandle, seconds),
);
