/**
 * One queue message -> one attempt of a delivery. The attempt is claimed, made, recorded and settled before the message is
 * acknowledged; a crash anywhere leaves a state from which the same message, or the sweeper, goes on.
 */
import { iso } from "#shared/clock.ts";
import { ConditionFailed } from "#shared/db/errors.ts";
import { all, type Change, equals } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import type { Exchange } from "#shared/deliveries/exchange.ts";
import { enter, leave, stepBack } from "#shared/deliveries/gate.ts";
import { isSuccess, noteHealth, resultOf } from "#shared/deliveries/health.ts";
import { hold } from "#shared/deliveries/hold.ts";
import { nextGapMs } from "#shared/deliveries/plan.ts";
import { type DeliveryMessage, messageFor, type StoredAttempt, StoredDelivery } from "#shared/deliveries/schema.ts";
import { signatureHeaders } from "#shared/deliveries/signature.ts";
import { waitAtGate } from "#shared/deliveries/waiting.ts";
import { bodyToSend } from "#shared/deliveries/window.ts";
import type { EventWorld } from "#shared/events/world.ts";
import { log } from "#shared/log.ts";
import { delaySecondsUntil } from "#shared/queue.ts";
import { StoredWebhook } from "#shared/webhooks/schema.ts";

/** A quick receiver's places are free again by then. */
const SOON_MS = 1_000;

/** `isRepeat`: the queue has handed this message out before, so its last receiver may have died half-way. */
export async function deliver(world: EventWorld, message: DeliveryMessage, isRepeat: boolean): Promise<void> {
  await tryDelivery(world, message, isRepeat);
}

/** `turned away`: for now the webhook can take no more. */
export type Outcome = "dealt with" | "turned away";

export async function tryDelivery(world: EventWorld, message: DeliveryMessage, isRepeat: boolean): Promise<Outcome> {
  const { companyId, webhookId, deliveryId } = message;
  const [item, webhookItem] = await Promise.all([
    world.table.get(keys.delivery(companyId, webhookId, deliveryId)),
    world.table.get(keys.webhook(companyId, webhookId)),
  ]);
  if (item === undefined) {
    log.error("delivery missing", { companyId, webhookId, deliveryId });
    return "dealt with";
  }
  const delivery = StoredDelivery.parse(item);
  if (delivery.state !== "waiting") return "dealt with";
  if (delivery.attempt !== message.attempt) {
    // The attempt of this message is over. If whoever made it died before planning the next, that is done here.
    if (isRepeat) await enqueue(world, delivery);
    return "dealt with";
  }
  const isWanted = webhookItem !== undefined && (await isRegistered(world.table, delivery));
  if (!isWanted) await settle(world, delivery, "cancelled");
  else if (Date.parse(delivery.dueAt) > world.clock.now()) await enqueue(world, delivery);
  else return throughGate(world, delivery, StoredWebhook.parse(webhookItem));
  return "dealt with";
}

/** The place at the gate bounds how many are in flight, and one sender alone holds that of a delivery. */
async function throughGate(world: EventWorld, delivery: StoredDelivery, webhook: StoredWebhook): Promise<Outcome> {
  if (webhook.status === "paused") {
    await hold(world, delivery);
    return "dealt with";
  }
  const entry = await enter(world, delivery);
  switch (entry.kind) {
    case "taken":
      if (await stillStands(world, delivery)) await enqueue(world, { ...delivery, dueAt: entry.until });
      return "dealt with";
    case "soon":
      // What waits at the gate is looked after: it needs no message of its own.
      if (delivery.dueShard !== keys.dueShard(delivery.id)) return "turned away";
      await enqueue(world, { ...delivery, dueAt: iso(world.clock.now() + SOON_MS) });
      return "turned away";
    case "full":
    case "open":
      await waitAtGate(world, delivery, entry);
      return "turned away";
    default:
      await send(world, delivery, webhook, entry.slot);
      return "dealt with";
  }
}

async function send(world: EventWorld, delivery: StoredDelivery, webhook: StoredWebhook, slot: string): Promise<void> {
  if (!(await stillStands(world, delivery))) return stepBack(world, delivery, slot);
  const exchange = await attempt(world, delivery, webhook);
  await noteHealth(world, webhook, exchange);
  await conclude(world, delivery, exchange);
  await leave(world, delivery, slot, { isSuccess: isSuccess(exchange), latencyMs: exchange.latencyMs });
}

/** Is the registration that asked for it still there? What nobody registered for needs none. */
export async function isRegistered(table: Table, delivery: StoredDelivery): Promise<boolean> {
  const { companyId, webhookId, registrationId } = delivery;
  if (registrationId === null) return true;
  return (await table.get(keys.registration(companyId, webhookId, registrationId))) !== undefined;
}

/** Read before the place was taken, the attempt may have been made meanwhile; whoever made it gave the place back after that. */
async function stillStands({ table }: EventWorld, delivery: StoredDelivery): Promise<boolean> {
  const item = await table.get(deliveryKey(delivery));
  if (item === undefined) return false;
  const { state, attempt } = StoredDelivery.parse(item);
  return state === "waiting" && attempt === delivery.attempt;
}

async function attempt(world: EventWorld, delivery: StoredDelivery, webhook: StoredWebhook): Promise<Exchange> {
  const { id, event, companyId, webhookId, expiresAt } = delivery;
  const body = await bodyToSend(world.table, delivery);
  const startedMs = world.clock.now();
  const exchange = await world.post({
    url: webhook.url,
    body,
    headers: {
      "Content-Type": "application/json; charset=utf-8",
      "User-Agent": "canvassing-webhooks/1",
      "X-Service-Event": event,
      "X-Service-Delivery": id,
      "X-Service-Attempt": String(delivery.attempt),
      ...signatureHeaders(webhook, id, body, startedMs),
    },
  });
  const { status } = exchange;
  const record: StoredAttempt = {
    type: "attempt",
    number: delivery.attempt,
    startedAt: iso(startedMs),
    latencyMs: Math.round(exchange.latencyMs),
    status,
    error: exchange.error,
    answer: exchange.answer,
    expiresAt,
  };
  await world.table.write({ put: { ...keys.attempt(companyId, webhookId, id, delivery.attempt), ...record } });
  const { attempt } = delivery;
  log.info("attempted", { deliveryId: id, attempt, status, ms: record.latencyMs, result: resultOf(exchange) });
  return exchange;
}

/** A failure is planned again until the plan has no more attempts. */
async function conclude(world: EventWorld, delivery: StoredDelivery, exchange: Exchange): Promise<void> {
  const { retryAfter } = exchange;
  if (isSuccess(exchange)) return settle(world, delivery, "delivered");
  const now = world.clock.now();
  const failed = delivery.attempt - delivery.planFrom + 1;
  const gap = nextGapMs(delivery.id, failed, retryAfter, now, world.timeScale);
  if (gap === undefined) return settle(world, delivery, "exhausted");
  const next: StoredDelivery = { ...delivery, attempt: delivery.attempt + 1, dueAt: iso(now + gap) };
  await whileAttemptStands(world, delivery, {
    set: { attempt: next.attempt, dueAt: next.dueAt, dueShard: keys.dueShard(next.id), updatedAt: iso(now) },
  });
  await enqueue(world, next);
}

export async function settle(
  world: EventWorld,
  delivery: StoredDelivery,
  state: "delivered" | "exhausted" | "cancelled",
): Promise<void> {
  await whileAttemptStands(world, delivery, {
    set: { state, updatedAt: iso(world.clock.now()) },
    remove: ["dueShard"],
  });
}

/** Two senders of one attempt, the first taken for dead: whoever comes second changes nothing. */
async function whileAttemptStands({ table }: EventWorld, delivery: StoredDelivery, change: Change): Promise<void> {
  const when = all(equals("state", "waiting"), equals("attempt", delivery.attempt));
  await table.write({ update: deliveryKey(delivery), change, when }).catch((error: unknown) => {
    if (!(error instanceof ConditionFailed)) throw error;
  });
}

/** Queues the delivery for the time it is due, or for the next hop on the way there. */
export function enqueue({ queue, clock }: EventWorld, delivery: StoredDelivery): Promise<void> {
  const delaySeconds = delaySecondsUntil(Date.parse(delivery.dueAt), clock.now());
  return queue.send([{ message: messageFor(delivery), delaySeconds }]);
}

const deliveryKey = ({ companyId, webhookId, id }: StoredDelivery) => keys.delivery(companyId, webhookId, id);
