/** Pauses and resumes webhooks, and drains the paused backlog after a resume. */
import { type DeliveryQueue, delaySecondsUntil } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext, EventContext } from "#shared/context.ts";
import { optimistic } from "#shared/db/conditional-writes.ts";
import { all, equals, exists } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { drain, INDEX_LAG_MS, oldestIn, PAGE, pacedMs } from "#shared/webhooks/drain.ts";
import { messageFor, type PausedDrainMessage, pausedDrainMessage } from "#shared/webhooks/messages.ts";
import { updateIf, whilePending } from "#shared/webhooks/settle.ts";
import { StoredWebhook, type Webhook } from "#shared/webhooks/subscriptions/schema.ts";
import { maskedWebhook, readWebhook, type WebhookRows } from "#shared/webhooks/subscriptions/webhooks.ts";

/** Pauses a webhook. Attempts that are already running continue. */
export function pauseWebhook(context: ApiContext, companyId: number, id: number): Promise<Webhook> {
  return optimistic(async () => {
    const rows = await readWebhook(context, companyId, id);
    if (rows.webhook.status === "paused") return maskedWebhook(rows);
    const now = iso(context.clock.now());
    const set = { status: "paused", updatedAt: now, dueShard: keys.pausedWebhooksShard(), dueAt: now } as const;
    return changed(context, rows, { set, remove: [] });
  });
}

/** Resumes a webhook. Its paused backlog is then sent from the oldest to the newest, ten per second, deliveries of bulk jobs last. */
export async function resumeWebhook(
  context: ApiContext,
  queue: DeliveryQueue,
  companyId: number,
  id: number,
): Promise<Webhook> {
  const resumed = await optimistic(async () => {
    const rows = await readWebhook(context, companyId, id);
    if (rows.webhook.status === "active") return maskedWebhook(rows);
    const now = iso(context.clock.now());
    const due = { dueShard: keys.dueShard(`webhook-${id}`), dueAt: now };
    return changed(context, rows, { set: { status: "active", updatedAt: now, ...due }, remove: ["failingSince"] });
  });
  await queue.send([{ message: pausedDrainMessage(companyId, id), delaySeconds: 0 }]).catch(() => undefined);
  return resumed;
}

async function changed(
  context: ApiContext,
  { webhook, registrations }: WebhookRows,
  change: { set: Pick<StoredWebhook, "status" | "updatedAt">; remove: string[] },
): Promise<Webhook> {
  const { companyId, id, status } = webhook;
  const shown = maskedWebhook({ webhook: { ...webhook, ...change.set }, registrations });
  await context.commit([{ update: keys.webhook(companyId, id), change, when: equals("status", status) }], shown);
  return shown;
}

/**
 * Moves a delivery into the paused backlog. A concurrent resume may miss the delivery. The webhook is therefore read after the write, and
 * the delivery is queued if the webhook is not paused any more.
 */
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
async function resumeDelivery(context: EventContext, delivery: StoredDelivery, dueMs: number): Promise<void> {
  const { companyId, webhookId, id, dueShard } = delivery;
  const dueAtMs = Math.max(dueMs, Date.parse(delivery.dueAt));
  const resumed = await updateIf(context, {
    update: keys.delivery(companyId, webhookId, id),
    change: { set: { dueShard: keys.dueShard(id), dueAt: iso(dueAtMs) }, remove: ["sweptAt"] },
    // Only a waiting delivery has `dueShard`.
    when: equals("dueShard", dueShard),
  });
  if (resumed === undefined) return;
  const delaySeconds = delaySecondsUntil(dueAtMs, context.clock.now());
  await context.queue.send([{ message: messageFor(delivery), delaySeconds }]);
}

/** Runs the next step of sending a webhook's paused backlog. Stops if the webhook is paused again. */
export function drainPausedBacklog(context: EventContext, { companyId, webhookId }: PausedDrainMessage): Promise<void> {
  const isActive = equals("status", "active");
  const backlog = {
    key: keys.webhook(companyId, webhookId),
    lease: "dueAt",
    isOpen: all(isActive, exists("dueAt")),
    message: pausedDrainMessage(companyId, webhookId),
  } as const;
  return drain(context, backlog, async (row, startMs) => {
    const { updatedAt } = StoredWebhook.parse(row);
    const [ordinary, bulk] = keys.pausedBacklogShards(companyId, webhookId);
    const page = (await oldestIn(context.table, [ordinary])) ?? (await oldestIn(context.table, [bulk]));
    if (page === undefined && startMs - Date.parse(updatedAt) > INDEX_LAG_MS) {
      return { end: { remove: ["dueShard", "dueAt"] } };
    }
    for (const [i, delivery] of (page ?? []).entries()) await resumeDelivery(context, delivery, pacedMs(startMs, i));
    return { nextMs: pacedMs(startMs, PAGE) };
  });
}
