/** Reads the deliveries of a webhook: a part of its log, newest first, or one with its attempts. */

import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import type { Item } from "#shared/db/item.ts";
import { DELIVERY_SHARDS, keys } from "#shared/db/keys.ts";
import { gateKeys } from "#shared/db/limiter-keys.ts";
import type { Table } from "#shared/db/table.ts";
import { notFound } from "#shared/errors.ts";
import { bodySoFar } from "#shared/webhooks/debounce-window.ts";
import { attemptsOf, StoredAttempt, StoredDelivery } from "#shared/webhooks/delivery.ts";
import type { Delivery, DeliveryDetail, DeliveryPage, DeliveryQuery } from "#shared/webhooks/delivery-log-schema.ts";
import { standingOf } from "#shared/webhooks/delivery-status.ts";
import { StoredGate, slotsIn } from "#shared/webhooks/limiter/limiter.ts";
import { merged } from "#shared/webhooks/merged.ts";
import { readWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";

/** Deliveries that one request looks at. With a filter that few of them pass, an answer may be short, and the next goes on. */
const LOOKED_AT = 2_000;
/** Rows of one page of one partition. */
const PAGE_ITEMS = 60;

/** Throws not_found where the company has no such webhook. */
export async function listDeliveries(
  context: ApiContext,
  companyId: number,
  webhookId: number,
  { status, event, cursor, limit }: DeliveryQuery,
): Promise<DeliveryPage> {
  const { registrations } = await readWebhook(context, companyId, webhookId);
  const registered = new Set(registrations.map(({ id }) => id));
  const gate = await readGate(context, companyId, webhookId);
  const items: Delivery[] = [];
  let looked = 0;
  for await (const delivery of newestFirst(context.table, companyId, webhookId, cursor)) {
    // One more than what is shown: there is a next part.
    const last = items.at(-1);
    if (last !== undefined && items.length === limit) return { items, nextCursor: last.id };
    const { registrationId } = delivery;
    const shown = presentDelivery(delivery, registrationId === null || registered.has(registrationId), gate);
    const isWanted = (status ?? shown.status) === shown.status && (event ?? shown.event) === shown.event;
    if (isWanted) items.push(shown);
    if (++looked === LOOKED_AT) return { items, nextCursor: delivery.id };
  }
  return { items, nextCursor: null };
}

function newestFirst(
  table: Table,
  companyId: number,
  webhookId: number,
  before: string | undefined,
): AsyncGenerator<StoredDelivery, void, undefined> {
  const shards = Array.from({ length: DELIVERY_SHARDS }, (_, shard) => {
    const place = { ...keys.deliveryShard(companyId, webhookId, shard), ...keys.deliveriesBefore(before) };
    return deliveriesIn(table.query({ ...place, newestFirst: true, pageItems: PAGE_ITEMS }), before);
  });
  return merged(shards, (a, b) => a.id > b.id);
}

async function* deliveriesIn(
  items: AsyncIterable<Item>,
  before: string | undefined,
): AsyncGenerator<StoredDelivery, undefined, undefined> {
  for await (const item of items) {
    if (item.type !== "delivery") continue;
    const delivery = StoredDelivery.parse(item);
    if (before === undefined || delivery.id < before) yield delivery;
  }
}

/** Two Queries, a read of the webhook, and for a delivery that waits a read of its registration. Throws not_found. */
export async function readDelivery(
  context: ApiContext,
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
  const gate = await readGate(context, companyId, webhookId);
  const shown = presentDelivery(delivery, isWanted, gate);
  return { ...shown, body: await bodySoFar(table, delivery), attempts: attemptsOf(delivery, attempts) };
}

async function deliveryRows(table: Table, companyId: number, webhookId: number, id: string) {
  const { pk, sk } = keys.delivery(companyId, webhookId, id);
  let delivery: StoredDelivery | undefined;
  const attempts: StoredAttempt[] = [];
  for await (const item of table.query({ pk, begins: sk })) {
    if (item.type === "delivery") delivery = StoredDelivery.parse(item);
    else attempts.push(StoredAttempt.parse(item));
  }
  return { delivery, attempts };
}

async function isRegistered(table: Table, { companyId, webhookId, registrationId }: StoredDelivery): Promise<boolean> {
  if (registrationId === null) return true;
  return (await table.get(keys.registration(companyId, webhookId, registrationId))) !== undefined;
}

interface Gate {
  /** Undefined where the receiver is called. */
  readonly openUntil: string | undefined;
  /** Open because attempts failed, and not because none could leave us. */
  readonly isBreaker: boolean;
  /** Deliveries that are being sent at the moment. */
  readonly inFlight: ReadonlySet<string>;
}

async function readGate({ table, clock }: ApiContext, companyId: number, webhookId: number): Promise<Gate> {
  const { pk, sk } = gateKeys.gate(companyId, webhookId);
  const now = iso(clock.now());
  for await (const item of table.query({ pk, begins: sk })) {
    const { openUntil = "", unsent } = StoredGate.parse(item);
    const inFlight = new Set(slotsIn(item).flatMap(({ ids, until }) => (until > now ? ids : [])));
    return { openUntil: openUntil > now ? openUntil : undefined, isBreaker: unsent === 0, inFlight };
  }
  return { openUntil: undefined, isBreaker: false, inFlight: new Set() };
}

/** What waits at the gate is tried when its breaker next lets one through, at the earliest. */
function presentDelivery(delivery: StoredDelivery, isWanted: boolean, gate: Gate): Delivery {
  const { openUntil, inFlight } = gate;
  const { state, attempt, dueAt } = delivery;
  // An attempt that is under way is not cut off, and may still deliver it.
  const status = standingOf(delivery, isWanted || inFlight.has(delivery.id));
  const isWaiting = status === "waiting";
  const heldBy = isWaiting ? holderOf(delivery, gate) : null;
  const isAtGate = heldBy === "breaker" || heldBy === "limit";
  const nextAt = isAtGate && openUntil !== undefined && openUntil > dueAt ? openUntil : dueAt;
  const isOver = state === "delivered" || state === "exhausted";
  return {
    ...delivery,
    status,
    attemptCount: isOver ? attempt : attempt - 1,
    nextAttemptAt: isWaiting ? nextAt : null,
    heldBy,
  };
}

function holderOf(
  { companyId, webhookId, dueShard }: StoredDelivery,
  { openUntil, isBreaker }: Gate,
): Delivery["heldBy"] {
  if (dueShard === keys.heldShard(companyId, webhookId)) return "pause";
  if (dueShard !== keys.gatedShard(companyId, webhookId)) return null;
  return openUntil !== undefined && isBreaker ? "breaker" : "limit";
}
