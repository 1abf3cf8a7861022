/** What the delivery queue brings: attempts, steps of releases and replays, looks at what waits at gates, parts of fan-outs. */
import * as z from "zod/mini";
import { look } from "#shared/deliveries/backlog.ts";
import { deliver } from "#shared/deliveries/deliver.ts";
import { release } from "#shared/deliveries/release.ts";
import { replay } from "#shared/deliveries/replay.ts";
import {
  DeliveryMessage,
  FanOutMessage,
  LookMessage,
  type QueueMessage,
  ReleaseMessage,
  ReplayMessage,
} from "#shared/deliveries/schema.ts";
import { expand } from "#shared/events/expand.ts";
import type { EventWorld } from "#shared/events/world.ts";
import type { Ends, Received } from "#shared/queue-consumer.ts";

type ReceivedMessage = Pick<Received<QueueMessage>, "message" | "isRepeat">;

export const AnyMessage = z.union([DeliveryMessage, ReleaseMessage, ReplayMessage, LookMessage, FanOutMessage]);

/** How each message of a batch ended, in their order. Deliveries are dealt with together, everything else by itself. */
export async function consume(world: EventWorld, batch: readonly ReceivedMessage[]): Promise<Ends> {
  const deliveries = batch.flatMap(({ message, isRepeat }) => ("deliveryId" in message ? [{ message, isRepeat }] : []));
  const others = batch.flatMap(({ message }) => ("deliveryId" in message ? [] : [message]));
  const [sent, done] = await Promise.all([
    deliver(world, deliveries),
    Promise.allSettled(others.map((message) => consumeOne(world, message))),
  ]);
  const [nextSent, nextDone] = [sent.values(), done.values()];
  return batch.flatMap(({ message }) => ("deliveryId" in message ? nextSent : nextDone).next().value ?? []);
}

function consumeOne(world: EventWorld, message: Exclude<QueueMessage, DeliveryMessage>): Promise<void> {
  if ("release" in message) return release(world, message);
  if ("replay" in message) return replay(world, message);
  if ("fanOut" in message) return expand(world, message);
  return look(world, message);
}
