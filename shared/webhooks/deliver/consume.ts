/** Handles the messages of the delivery queue: attempts of deliveries, steps of a drain or replay, and fan-outs. */
import type { EventContext } from "#shared/context.ts";
import type { Ends, Received } from "#shared/queue-consumer.ts";
import { deliver } from "#shared/webhooks/deliver/deliver.ts";
import { drainPausedBacklog } from "#shared/webhooks/deliver/paused-backlog.ts";
import { drainReplay } from "#shared/webhooks/deliver/replay.ts";
import { drainThrottledBacklog } from "#shared/webhooks/deliver/throttled-backlog.ts";
import { expand } from "#shared/webhooks/events/fan-out.ts";
import type { DeliveryMessage, QueueMessage } from "#shared/webhooks/messages.ts";

type ReceivedMessage = Pick<Received<QueueMessage>, "message" | "isRepeat">;

/** Returns the result of each message, in the order of the batch. One call of `deliver` makes all attempts of the batch. */
export async function consume(context: EventContext, batch: readonly ReceivedMessage[]): Promise<Ends> {
  const attempts = batch.flatMap(({ message, isRepeat }) => ("deliveryId" in message ? [{ message, isRepeat }] : []));
  const others = batch.flatMap(({ message }) => ("deliveryId" in message ? [] : [message]));
  const [attempted, done] = await Promise.all([
    deliver(context, attempts),
    Promise.allSettled(others.map((message) => consumeOne(context, message))),
  ]);
  const [nextAttempted, nextDone] = [attempted.values(), done.values()];
  return batch.flatMap(({ message }) => ("deliveryId" in message ? nextAttempted : nextDone).next().value ?? []);
}

function consumeOne(context: EventContext, message: Exclude<QueueMessage, DeliveryMessage>): Promise<void> {
  if ("release" in message) return drainPausedBacklog(context, message);
  if ("replay" in message) return drainReplay(context, message);
  if ("fanOut" in message) return expand(context, message);
  return drainThrottledBacklog(context, message);
}
