/** What the delivery queue brings: one attempt, one step of a release or replay, or a look at what waits at a gate. */
import * as z from "zod/mini";
import { look } from "#shared/deliveries/backlog.ts";
import { deliver } from "#shared/deliveries/deliver.ts";
import { release } from "#shared/deliveries/release.ts";
import { replay } from "#shared/deliveries/replay.ts";
import {
  DeliveryMessage,
  LookMessage,
  type QueueMessage,
  ReleaseMessage,
  ReplayMessage,
} from "#shared/deliveries/schema.ts";
import type { EventWorld } from "#shared/events/world.ts";

export const AnyMessage = z.union([DeliveryMessage, ReleaseMessage, ReplayMessage, LookMessage]);

/** `isRepeat`: the queue has handed this message out before, so its last receiver may have died half-way. */
export function consume(world: EventWorld, message: QueueMessage, isRepeat: boolean): Promise<void> {
  if ("release" in message) return release(world, message);
  if ("replay" in message) return replay(world, message);
  if ("look" in message) return look(world, message);
  return deliver(world, message, isRepeat);
}
