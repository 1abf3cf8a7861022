/** Handles the messages of the delivery queue: attempts of deliveries, steps of a drain or replay, and fan-outs. */
import type { EventContext } from "#shared/context.ts";
import type { Ends, Received } from "#shared/queue-consumer.ts";
import { deliver } from "#shared/webhooks/deliver/deliver.ts";
import { drain } from "#shared/webhooks/deliver/drain.ts";
import { expand } from "#shared/webhooks/events/fan-out.ts";
import type { QueueMessage } from "#shared/webhooks/messages.ts";

type ReceivedMessage = Pick<Received<QueueMessage>, "message" | "isRepeat">;

/** Returns the result of each message, in the order of the batch. One call of `deliver` makes all attempts of the batch. */
export async function consume(context: EventContext, batch: readonly ReceivedMessage[]): Promise<Ends> {
  const attempts = batch.flatMap(({ message, isRepeat }) => ("deliveryId" in message ? [{ message, isRepeat }] : []));
  const others = batch.flatMap(({ message }) => ("deliveryId" in message ? [] : [message]));
  const [attempted, done] = await Promise.all([
    deliver(context, attempts),
    Promise.allSettled(
      others.map((message) => ("drain" in message ? drain(context, message) : expand(context, message))),
    ),
  ]);
  const [nextAttempted, nextDone] = [attempted.values(), done.values()];
  return batch.flatMap(({ message }) => ("deliveryId" in message ? nextAttempted : nextDone).next().value ?? []);
}
