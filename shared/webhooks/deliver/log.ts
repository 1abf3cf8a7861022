/** Reads a webhook's delivery log for the API: a page of deliveries with the newest first, or one delivery with its attempts. */
import { iso } from "#shared/clock.ts";
import type { ReadContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import { notFound } from "#shared/errors.ts";
import {
  attemptsOf,
  effectiveState,
  readDeliveries,
  StoredAttempt,
  StoredDelivery,
} from "#shared/webhooks/delivery.ts";
import type { Delivery, DeliveryDetail, DeliveryPage, DeliveryQuery } from "#shared/webhooks/delivery-schema.ts";
import { bodySoFar } from "#shared/webhooks/events/debounce.ts";
import { type Limiter, limiterOf } from "#shared/webhooks/limiter/limiter.ts";
import { readWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";

/** Maximum number of deliveries that one request reads. If few of them pass the filter, the page is short. */
const READ_PER_PAGE = 2_000;
const PAGE_ITEMS = 60;

export async function listDeliveries(
  context: ReadContext,
  companyId: number,
  webhookId: number,
  { status, event, cursor, limit }: DeliveryQuery,
): Promise<DeliveryPage> {
  const { registrations } = await readWebhook(context, companyId, webhookId);
  const registered = new Set(registrations.map(({ id }) => id));
  const limiter = await currentLimiter(context, companyId, webhookId);
  const items: Delivery[] = [];
  let read = 0;
  const range = { ...keys.deliveriesBefore(cursor), newestFirst: true, pageItems: PAGE_ITEMS };
  for await (const delivery of readDeliveries(context.table, { companyId, webhookId }, range)) {
    // Both bounds of the range are inclusive, so it contains the delivery of the cursor, which the previous page has shown.
    if (cursor !== undefined && delivery.id >= cursor) continue;
    const last = items.at(-1);
    if (last !== undefined && items.length === limit) return { items, nextCursor: last.id };
    const { registrationId } = delivery;
    const shown = presentDelivery(delivery, registrationId === null || registered.has(registrationId), limiter);
    const isWanted = (status ?? shown.status) === shown.status && (event ?? shown.event) === shown.event;
    if (isWanted) items.push(shown);
    if (++read === READ_PER_PAGE) return { items, nextCursor: delivery.id };
  }
  return { items, nextCursor: null };
}

export async function readDelivery(
  context: ReadContext,
  companyId: number,
  webhookId: number,
  id: string,
): Promise<DeliveryDetail> {
  const { table } = context;
  const [webhook, { delivery, attempts }] = await Promise.all([
    table.get(keys.webhook(companyId, webhookId)),
    deliveryRows(table, companyId, webhookId, id),
  ]);
  if (webhook === undefined || delivery === undefined) throw notFound("delivery");
  const isWanted = delivery.state !== "waiting" || (await isRegistered(table, delivery));
  const limiter = await currentLimiter(context, companyId, webhookId);
  const shown = presentDelivery(delivery, isWanted, limiter);
  return { ...shown, body: await bodySoFar(table, delivery), attempts: attemptsOf(delivery, attempts) };
}

async function deliveryRows(table: Reads, companyId: number, webhookId: number, id: string) {
  const { pk, sk } = keys.delivery(companyId, webhookId, id);
  let delivery: StoredDelivery | undefined;
  const attempts: StoredAttempt[] = [];
  for await (const item of table.query({ pk, begins: sk })) {
    if (item.type === "delivery") delivery = StoredDelivery.parse(item);
    else attempts.push(StoredAttempt.parse(item));
  }
  return { delivery, attempts };
}

async function isRegistered(table: Reads, { companyId, webhookId, registrationId }: StoredDelivery): Promise<boolean> {
  if (registrationId === null) return true;
  return (await table.get(keys.registration(companyId, webhookId, registrationId))) !== undefined;
}

/** Returns the limiter as it is now. If the wait until `openUntil` is over, `openUntil` is undefined. Expired slots are left out. */
async function currentLimiter({ table, clock }: ReadContext, companyId: number, webhookId: number): Promise<Limiter> {
  const { pk, sk } = limiterKeys.limiter(companyId, webhookId);
  const now = iso(clock.now());
  // The limiter's row is read with a Query, because the IAM policy of the functions that show deliveries allows no other read of this row.
  for await (const item of table.query({ pk, begins: sk })) {
    const { openUntil, slots, ...limiter } = limiterOf({ companyId, webhookId }, item);
    const isOpen = openUntil !== undefined && openUntil > now;
    return { ...limiter, openUntil: isOpen ? openUntil : undefined, slots: slots.filter(({ until }) => until > now) };
  }
  return limiterOf({ companyId, webhookId });
}

/** Returns a delivery as the API shows it. The `nextAttemptAt` of a throttled delivery is not before the circuit breaker closes. */
function presentDelivery(delivery: StoredDelivery, isWanted: boolean, limiter: Limiter): Delivery {
  const { openUntil, slots } = limiter;
  const { state, attempt, dueAt } = delivery;
  // A delivery whose attempt is running is not shown as cancelled, because the attempt may still succeed.
  const isInFlight = slots.some(({ ids }) => ids.includes(delivery.id));
  const status = effectiveState(delivery, isWanted || isInFlight);
  const isWaiting = status === "waiting";
  const heldBy = isWaiting ? heldByOf(delivery, limiter) : null;
  const isThrottled = heldBy === "breaker" || heldBy === "limit";
  const nextAt = isThrottled && openUntil !== undefined && openUntil > dueAt ? openUntil : dueAt;
  const isOver = state === "delivered" || state === "exhausted";
  return {
    ...delivery,
    status,
    attemptCount: isOver ? attempt : attempt - 1,
    nextAttemptAt: isWaiting ? nextAt : null,
    heldBy,
  };
}

function heldByOf({ companyId, webhookId, dueShard }: StoredDelivery, limiter: Limiter): Delivery["heldBy"] {
  if (keys.isPausedBacklog(companyId, webhookId, dueShard)) return "pause";
  if (!keys.isThrottledBacklog(companyId, webhookId, dueShard)) return null;
  // After requests that could not be sent, the limiter waits too, but its circuit breaker is not open.
  return limiter.openUntil !== undefined && limiter.unsent === 0 ? "breaker" : "limit";
}
