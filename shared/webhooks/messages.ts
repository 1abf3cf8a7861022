/** The messages of the delivery queue. They contain only ids, because the deliverer reads the current rows from the table. */
import * as z from "zod/mini";
import { delaySecondsUntil } from "#shared/aws/sqs.ts";
import type { EventContext } from "#shared/context.ts";
import { absent, type Write } from "#shared/db/expression.ts";
import type { Plan } from "#shared/db/plan.ts";
import type { FanOutLane } from "#shared/db/webhook-keys.ts";
import { Id } from "#shared/schema.ts";
import { DeliveryId, deliveryItem, type StoredDelivery } from "#shared/webhooks/delivery.ts";
import { expectedPut } from "#shared/webhooks/expected-deliveries.ts";

const ofWebhook = { v: z.literal(1), companyId: Id, webhookId: Id };

/** Messages for events of single records of a bulk job have a separate message group in SQS. */
const isBulk = z.optional(z.literal(true));

export const DeliveryMessage = z.object({
  ...ofWebhook,
  isBulk,
  deliveryId: DeliveryId,
  attempt: z.int().check(z.minimum(1)),
});
export type DeliveryMessage = z.infer<typeof DeliveryMessage>;

/** Asks for the next step of a drain (drain.ts). */
export const DrainMessage = z.object({ ...ofWebhook, drain: z.enum(["paused", "throttled", "replay"]) });
export type DrainMessage = z.infer<typeof DrainMessage>;

/** Asks for the next deliveries of a company's fan-outs. */
export const FanOutMessage = z.object({ v: z.literal(1), fanOut: z.literal(true), companyId: Id, isBulk });
export type FanOutMessage = z.infer<typeof FanOutMessage>;

export const QueueMessage = z.union([DeliveryMessage, DrainMessage, FanOutMessage]);
export type QueueMessage = z.infer<typeof QueueMessage>;

export const messageFor = ({ companyId, webhookId, id, attempt, isBulk }: StoredDelivery): DeliveryMessage => ({
  v: 1,
  companyId,
  webhookId,
  deliveryId: id,
  attempt,
  isBulk,
});

export const drainMessage = (
  { companyId, webhookId }: Pick<DrainMessage, "companyId" | "webhookId">,
  drain: DrainMessage["drain"],
): DrainMessage => ({ v: 1, drain, companyId, webhookId });

export const fanOutMessage = ({ companyId, isBulk }: FanOutLane): FanOutMessage => ({
  v: 1,
  fanOut: true,
  companyId,
  isBulk,
});

/** Queues each delivery for its due time. SQS delays a message by at most 15 minutes. The deliverer queues it again if it arrives early. */
export async function enqueue(
  { queue, clock }: Pick<EventContext, "queue" | "clock">,
  deliveries: readonly StoredDelivery[],
): Promise<[]> {
  const now = clock.now();
  const messages = deliveries.map((delivery) => ({
    message: messageFor(delivery),
    delaySeconds: delaySecondsUntil(Date.parse(delivery.dueAt), now),
  }));
  if (messages.length > 0) await queue.send(messages);
  return [];
}

/** The plan of a delivery that a user asks for. `others` are the first writes of its transaction. */
export function askedDelivery(
  sender: Pick<EventContext, "queue" | "clock">,
  delivery: StoredDelivery,
  others: readonly Write[],
): Plan<{ readonly deliveryId: string }> {
  return {
    writes: [...others, { put: deliveryItem(delivery), when: absent }, expectedPut(delivery)],
    answer: { deliveryId: delivery.id },
    // The sweeper sends a message for the delivery later, if the queue fails.
    after: () => enqueue(sender, [delivery]).catch(() => undefined),
  };
}
