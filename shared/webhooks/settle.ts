/** Writes of deliveries that hold while nobody else has moved them on, and the messages that go with them. */

import { delaySecondsUntil } from "#shared/aws/queue.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { updateEach } from "#shared/db/each.ts";
import { all, type Change, equals } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { messageFor, type StoredDelivery } from "#shared/webhooks/delivery.ts";

/** Two senders of one attempt, the first taken for dead: whoever comes second changes nothing. */
export const whileAttemptStands = (delivery: StoredDelivery, change: Change) => ({
  update: keys.delivery(delivery.companyId, delivery.webhookId, delivery.id),
  change,
  when: all(equals("state", "waiting"), equals("attempt", delivery.attempt)),
});

export const settled = (state: "delivered" | "exhausted" | "cancelled", nowMs: number): Change => ({
  set: { state, updatedAt: iso(nowMs) },
  remove: ["dueShard"],
});

export async function cancel({ table, clock }: EventContext, deliveries: readonly StoredDelivery[]): Promise<void> {
  const change = settled("cancelled", clock.now());
  await updateEach(
    table,
    deliveries.map((delivery) => whileAttemptStands(delivery, change)),
  );
}

/** Queues each for the time it is due, or for the next hop on the way there. */
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
