/** Drains a webhook's throttled backlog. Only one function does this at a time. It may use all free slots of the webhook. */
import { allEnded } from "#shared/all-ended.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { equals, exists } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import { attemptDeliveries } from "#shared/webhooks/deliver/deliver.ts";
import { addToPausedBacklog } from "#shared/webhooks/deliver/paused-backlog.ts";
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { drain, INDEX_LAG_MS, oldestIn, type Step } from "#shared/webhooks/drain.ts";
import { FULL_MS, readLimiter, StoredLimiter, slotLimit, takesBatches } from "#shared/webhooks/limiter/limiter.ts";
import { messageFor, type ThrottledDrainMessage, throttledDrainMessage } from "#shared/webhooks/messages.ts";
import { cancel } from "#shared/webhooks/settle.ts";
import { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

const TOGETHER = 10;
/** A step begins no request later than this many milliseconds after its start, so that all end before the function's time-out. */
const BEGIN_WITHIN_MS = 3_000;

export function drainThrottledBacklog(
  context: EventContext,
  { companyId, webhookId }: ThrottledDrainMessage,
): Promise<void> {
  const backlog = {
    key: limiterKeys.limiter(companyId, webhookId),
    lease: "lookUntil",
    isOpen: exists("dueShard"),
    message: throttledDrainMessage(companyId, webhookId),
  } as const;
  return drain(context, backlog, (row, startMs) => drainPage(context, StoredLimiter.parse(row), startMs));
}

/**
 * Sends one page of the throttled backlog, except while the limiter allows no sending. Moves it to the paused backlog if the webhook is
 * paused. If the webhook is deleted, cancels all its waiting deliveries, page by page.
 */
async function drainPage(context: EventContext, limiter: StoredLimiter, startMs: number): Promise<Step> {
  const { companyId, webhookId, openUntil } = limiter;
  const item = await context.table.get(keys.webhook(companyId, webhookId));
  const status = item === undefined ? "deleted" : StoredWebhook.parse(item).status;
  if (status === "active" && openUntil !== undefined && openUntil > iso(startMs)) {
    return { nextMs: Date.parse(openUntil) };
  }
  const page = await nextPage(context, limiter, status === "deleted");
  if (page === undefined) return closeAfterLag(context, limiter);
  // The due index lags behind the rows: its entries may be of deliveries that have left the backlog. The next step reads it again.
  if (page.length === 0) return { nextMs: startMs + FULL_MS };
  if (status === "active") return { nextMs: await sendPage(context, limiter, page) };
  if (status === "deleted") await cancel(context, page);
  else for (const delivery of page) await addToPausedBacklog(context, delivery);
  return { nextMs: context.clock.now() };
}

/** Without these, deliveries of bulk jobs would wait until the webhook has no other deliveries in its backlog. */
const BULK_BESIDE_OTHERS = 10;

/**
 * Returns the next deliveries of the throttled backlog, those of bulk jobs last. If the webhook is deleted, the paused backlog is included.
 * Returns undefined if the due index has no entry.
 */
async function nextPage(
  { table }: EventContext,
  { companyId, webhookId }: StoredLimiter,
  isDeleted: boolean,
): Promise<StoredDelivery[] | undefined> {
  const [others, bulk] = keys.throttledBacklogShards(companyId, webhookId);
  if (isDeleted) return oldestIn(table, [others, bulk, ...keys.pausedBacklogShards(companyId, webhookId)]);
  const page = await oldestIn(table, [others]);
  const ofBulk = await oldestIn(table, [bulk]);
  if (page === undefined || ofBulk === undefined) return page ?? ofBulk;
  return [...page, ...ofBulk.slice(0, page.length === 0 ? undefined : BULK_BESIDE_OTHERS)];
}

/**
 * Sends until the page ends, the limiter refuses, or `BEGIN_WITHIN_MS` has passed. Returns the time of the next step. Throws the error of
 * an attempt that failed because of a fault of the service.
 */
async function sendPage(context: EventContext, limiter: StoredLimiter, page: StoredDelivery[]): Promise<number> {
  const { companyId, webhookId, openUntil: probed, slow } = limiter;
  const begun = context.clock.now();
  let isFull = false;
  async function work(): Promise<void> {
    while (!isFull && page.length > 0 && context.clock.now() - begun < BEGIN_WITHIN_MS) {
      const some = page.splice(0, takesBatches(limiter) ? TOGETHER : 1);
      const batch = some.map((delivery) => ({ message: messageFor(delivery), isRepeat: false }));
      const { failed, throttled } = await attemptDeliveries(context, batch);
      if (throttled.size > 0) isFull = true;
      for (const reason of failed.values()) throw reason;
    }
  }
  // After an open circuit breaker, the step sends one delivery at a time, to test the receiver.
  await allEnded(Array.from({ length: probed === undefined ? slotLimit(context.senders, slow) : 1 }, work));
  const now = context.clock.now();
  if (!isFull) return now;
  const { openUntil = "" } = StoredLimiter.parse(await readLimiter(context, companyId, webhookId));
  return openUntil > iso(now) ? Date.parse(openUntil) : now + FULL_MS;
}

/** Ends the drain when the index has been empty for `INDEX_LAG_MS`. Before that, it may lack a delivery that has just joined. */
function closeAfterLag({ clock }: EventContext, { emptySince }: StoredLimiter): Step {
  const now = clock.now();
  if (emptySince === undefined) return { nextMs: now + INDEX_LAG_MS, position: { set: { emptySince: iso(now) } } };
  const closeMs = Date.parse(emptySince) + INDEX_LAG_MS;
  if (now < closeMs) return { nextMs: closeMs };
  const end = { remove: ["dueShard", "dueAt", "emptySince", "lookUntil"] };
  return { end, when: equals("emptySince", emptySince) };
}
