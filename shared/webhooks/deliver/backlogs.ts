/**
 * Holds deliveries back: in the paused backlog while their webhook is paused, or in the throttled backlog while they wait for a slot. Both
 * backlogs are partitions of the due index, which `drain.ts` empties.
 */
import { delaySecondsUntil } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { any, equals, exists, missing } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { backlogMark, FULL_MS, type Limiter, type Refusal, readLimiter } from "#shared/webhooks/limiter/limiter.ts";
import { drainMessage, messageFor } from "#shared/webhooks/messages.ts";
import { updateEach, updateIf, whilePending } from "#shared/webhooks/settle.ts";
import { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

/** Then reads the webhook again. If it is no longer paused, queues the delivery, because the drain of the resume may have missed it. */
export async function addToPausedBacklog(context: EventContext, delivery: StoredDelivery): Promise<void> {
  const { companyId, webhookId, isBulk } = delivery;
  const set = { dueShard: keys.pausedBacklogShard(companyId, webhookId, isBulk), updatedAt: iso(context.clock.now()) };
  if ((await updateIf(context, whilePending(delivery, { set }))) === undefined) return;
  const item = await context.table.get(keys.webhook(companyId, webhookId));
  // The delivery of a deleted webhook is queued too, because the handling of its message cancels the delivery.
  const isPaused = item !== undefined && StoredWebhook.parse(item).status === "paused";
  if (!isPaused) await resumeDelivery(context, { ...delivery, dueShard: set.dueShard }, context.clock.now());
}

/** Removes a delivery from the paused backlog, if it is still there, and queues it for `dueMs` or for its own later due time. */
export async function resumeDelivery(context: EventContext, delivery: StoredDelivery, dueMs: number): Promise<void> {
  const { companyId, webhookId, id, dueShard } = delivery;
  const dueAtMs = Math.max(dueMs, Date.parse(delivery.dueAt));
  const resumed = await updateIf(context, {
    update: keys.delivery(companyId, webhookId, id),
    change: { set: { dueShard: keys.dueShard(id), dueAt: iso(dueAtMs) }, remove: ["sweptAt"] },
    // Only a waiting delivery has `dueShard`, so the condition also fails if the delivery has ended.
    when: equals("dueShard", dueShard),
  });
  if (resumed === undefined) return;
  const delaySeconds = delaySecondsUntil(dueAtMs, context.clock.now());
  await context.queue.send([{ message: messageFor(delivery), delaySeconds }]);
}

/**
 * Moves deliveries that may not be sent now into the throttled backlog. They keep their due time and lose no attempt. The limiter's row
 * gets the mark (`dueShard`) before the deliveries are moved, so that a drain finds them even if this sender is killed. The mark is checked
 * again at the end, because a step of the drain that finds the backlog empty may remove the mark meanwhile.
 */
export async function addToThrottledBacklog(
  context: EventContext,
  deliveries: readonly StoredDelivery[],
  refusal: Extract<Refusal, { kind: "full" | "open" }>,
  limiter: Limiter,
): Promise<void> {
  if (deliveries.length === 0) return;
  const { companyId, webhookId } = limiter;
  const isMarked = await mark(context, limiter);
  const updatedAt = iso(context.clock.now());
  const added = deliveries.flatMap((delivery) => {
    const dueShard = keys.throttledBacklogShard(companyId, webhookId, delivery.isBulk);
    if (delivery.dueShard === dueShard) return [];
    return [whilePending(delivery, { set: { dueShard, updatedAt }, remove: ["sweptAt"] })];
  });
  await updateEach(context.table, added);
  const isMarkedAgain = await mark(context, await readLimiter(context, limiter));
  if (!isMarked && !isMarkedAgain) return;
  const { clock, queue } = context;
  const atMs = refusal.kind === "open" ? Date.parse(refusal.until) : clock.now() + FULL_MS;
  const message = drainMessage({ companyId, webhookId }, "throttled");
  await queue.send([{ message, delaySeconds: delaySecondsUntil(atMs, clock.now()) }]);
}

/** Sets `dueShard` if it is missing, or if a drain has found no delivery (`emptySince`) and will remove it. Returns true after a write. */
async function mark(context: EventContext, { companyId, webhookId, dueShard, emptySince }: Limiter): Promise<boolean> {
  if (dueShard !== undefined && emptySince === undefined) return false;
  const marked = await updateIf(context, {
    update: limiterKeys.limiter(companyId, webhookId),
    change: { set: backlogMark(companyId, webhookId, context.clock.now()), remove: ["emptySince"] },
    when: any(missing("dueShard"), exists("emptySince")),
  });
  return marked !== undefined;
}
