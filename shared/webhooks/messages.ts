/** Messages of the delivery queue. A message names rows of the table and never contains a body. */
import * as z from "zod/mini";
import { delaySecondsUntil } from "#shared/aws/sqs.ts";
import type { EventContext } from "#shared/context.ts";
import { Id } from "#shared/schema.ts";
import { DeliveryId, type StoredDelivery } from "#shared/webhooks/delivery.ts";

const ofWebhook = { v: z.literal(1), companyId: Id, webhookId: Id };

/** Makes one attempt of a delivery. */
export const DeliveryMessage = z.object({
  ...ofWebhook,
  deliveryId: DeliveryId,
  attempt: z.int().check(z.minimum(1)),
});
export type DeliveryMessage = z.infer<typeof DeliveryMessage>;

/** Starts the next step of draining a paused backlog. */
export const PausedDrainMessage = z.object({ ...ofWebhook, release: z.literal(true) });
export type PausedDrainMessage = z.infer<typeof PausedDrainMessage>;

/** Starts the next step of draining a throttled backlog. */
export const ThrottledDrainMessage = z.object({ ...ofWebhook, look: z.literal(true) });
export type ThrottledDrainMessage = z.infer<typeof ThrottledDrainMessage>;

/** Starts the next step of a replay. */
export const ReplayMessage = z.object({ ...ofWebhook, replay: z.literal(true) });
export type ReplayMessage = z.infer<typeof ReplayMessage>;

/** Makes further deliveries of those events of a company that have many matches. */
export const FanOutMessage = z.object({ v: z.literal(1), fanOut: z.literal(true), companyId: Id });
export type FanOutMessage = z.infer<typeof FanOutMessage>;

export const QueueMessage = z.union([
  DeliveryMessage,
  PausedDrainMessage,
  ReplayMessage,
  ThrottledDrainMessage,
  FanOutMessage,
]);
export type QueueMessage = z.infer<typeof QueueMessage>;

export const messageFor = ({ companyId, webhookId, id, attempt }: StoredDelivery): DeliveryMessage => ({
  v: 1,
  companyId,
  webhookId,
  deliveryId: id,
  attempt,
});

export const pausedDrainMessage = (companyId: number, webhookId: number): PausedDrainMessage => ({
  v: 1,
  release: true,
  companyId,
  webhookId,
});

export const throttledDrainMessage = (companyId: number, webhookId: number): ThrottledDrainMessage => ({
  v: 1,
  look: true,
  companyId,
  webhookId,
});

export const replayMessage = (companyId: number, webhookId: number): ReplayMessage => ({
  v: 1,
  replay: true,
  companyId,
  webhookId,
});

export const fanOutMessage = (companyId: number): FanOutMessage => ({ v: 1, fanOut: true, companyId });

/**
 * Queues each delivery for its due time. A message waits at most 15 minutes. If the delivery is not due then, a new message is queued for
 * the rest of the time.
 */
export async function enqueue({ queue, clock }: EventContext, deliveries: readonly StoredDelivery[]): Promise<void> {
  if (deliveries.length === 0) return;
  const now = clock.now();
  await queue.send(
    deliveries.map((delivery) => ({
      message: messageFor(delivery),
      delaySeconds: delaySecondsUntil(Date.parse(delivery.dueAt), now),
    })),
  );
}
