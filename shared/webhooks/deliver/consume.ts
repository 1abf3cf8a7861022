/** What the delivery queue brings: attempts, steps of releases and replays, looks at what waits at gates, parts of fan-outs. */
import * as z from "zod/mini";
import type { EventContext } from "#shared/context.ts";
import type { Ends, Received } from "#shared/queue-consumer.ts";
import { deliver } from "#shared/webhooks/deliver/deliver.ts";
import { release } from "#shared/webhooks/deliver/drain-paused.ts";
import { look } from "#shared/webhooks/deliver/drain-throttled.ts";
import { replay } from "#shared/webhooks/deliver/replay.ts";
import {
  DeliveryMessage,
  FanOutMessage,
  LookMessage,
  type QueueMessage,
  ReleaseMessage,
  ReplayMessage,
} from "#shared/webhooks/delivery.ts";
import { expand } from "#shared/webhooks/events/fan-out.ts";

type ReceivedMessage = Pick<Received<QueueMessage>, "message" | "isRepeat">;

export const AnyMessage = z.union([DeliveryMessage, ReleaseMessage, ReplayMessage, LookMessage, FanOutMessage]);

/** How each message of a batch ended, in their order. Deliveries are dealt with together, everything else by itself. */
export async function consume(context: EventContext, batch: readonly ReceivedMessage[]): Promise<Ends> {
  const deliveries = batch.flatMap(({ message, isRepeat }) => ("deliveryId" in message ? [{ message, isRepeat }] : []));
  const others = batch.flatMap(({ message }) => ("deliveryId" in message ? [] : [message]));
  const [sent, done] = await Promise.all([
    deliver(context, deliveries),
    Promise.allSettled(others.map((message) => consumeOne(context, message))),
  ]);
  const [nextSent, nextDone] = [sent.values(), done.values()];
  return batch.flatMap(({ message }) => ("deliveryId" in message ? nextSent : nextDone).next().value ?? []);
}

function consumeOne(context: EventContext, message: Exclude<QueueMessage, DeliveryMessage>): Promise<void> {
  if ("release" in message) return release(context, message);
  if ("replay" in message) return replay(context, message);
  if ("fanOut" in message) return expand(context, message);
  return look(context, message);
}
