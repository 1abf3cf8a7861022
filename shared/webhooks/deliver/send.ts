/**
 * Deliveries of one webhook with a place at its gate: posted at the same time, recorded and settled, and the place given back
 * with what was seen of the receiver.
 */

import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { updateEach } from "#shared/db/each.ts";
import type { Change } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { log } from "#shared/log.ts";
import type { Exchange } from "#shared/outbound/post.ts";
import { bodyToSend } from "#shared/webhooks/debounce-window.ts";
import { isSuccess, noteHealth, resultOf } from "#shared/webhooks/deliver/health.ts";
import { requestOf } from "#shared/webhooks/deliver/request.ts";
import { isGivenUp, waitUnsent } from "#shared/webhooks/deliver/unsent.ts";
import { type Attempt, type StoredAttempt, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { leave, stepBack } from "#shared/webhooks/limiter/limiter.ts";
import { guarded, type Outcome } from "#shared/webhooks/outcome.ts";
import { nextGapMs } from "#shared/webhooks/retry-plan.ts";
import { enqueue, settled, whileAttemptStands } from "#shared/webhooks/settle.ts";
import type { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";
import { openedSecrets } from "#shared/webhooks/subscriptions/secret.ts";

/** Exchanges that end within this time of each other are recorded together. */
const TOGETHER_MS = 100;

interface Made {
  readonly delivery: StoredDelivery;
  readonly startedMs: number;
  readonly exchange: Exchange;
}

export async function sendWith(
  context: EventContext,
  webhook: StoredWebhook,
  deliveries: readonly StoredDelivery[],
  slot: string,
  outcome: Outcome,
): Promise<void> {
  const { companyId, id: webhookId } = webhook;
  const place = { companyId, webhookId, ids: deliveries.map(({ id }) => id) };
  // Read before the place was taken, an attempt may have been made meanwhile; whoever made it gave the place back after that.
  const due = await standing(context, deliveries);
  const seen: Exchange[] = [];
  const unsent: StoredDelivery[] = [];
  await exchangeAll(context, webhook, due, outcome, async (made) => {
    const hasEnded = (one: Made): boolean => one.exchange.isUnsent !== true || isGivenUp(context, one.delivery);
    const ended = made.filter(hasEnded);
    unsent.push(...made.filter((one) => !hasEnded(one)).map(({ delivery }) => delivery));
    seen.push(...made.filter(({ exchange }) => exchange.isUnsent !== true).map(({ exchange }) => exchange));
    const recorded = ended.map(({ delivery }) => delivery);
    await guarded(outcome, recorded, () => recordAll(context, webhook, ended));
  });
  const shown = seen.map((exchange) => ({ isSuccess: isSuccess(exchange), latencyMs: exchange.latencyMs }));
  if (shown.length > 0) await leave(context, place, slot, shown);
  if (unsent.length > 0) {
    for (const { id } of unsent) outcome.turnedAway.add(id);
    await guarded(outcome, unsent, () => waitUnsent(context, place, unsent, shown.length === 0 ? slot : undefined));
  } else if (shown.length === 0) await stepBack(context, place, slot);
}

/** All at the same time. What has ended is recorded while the others go on: a receiver that hangs holds up no record. */
async function exchangeAll(
  context: EventContext,
  webhook: StoredWebhook,
  deliveries: readonly StoredDelivery[],
  outcome: Outcome,
  record: (made: readonly Made[]) => Promise<void>,
): Promise<void> {
  const ended: Made[] = [];
  let hasEnded = Promise.withResolvers<void>();
  const exchanges = deliveries.map((delivery) =>
    guarded(outcome, [delivery], async () => {
      ended.push(await exchangeOf(context, webhook, delivery));
      hasEnded.resolve();
    }),
  );
  let isOver = false;
  const all = Promise.all(exchanges).then(() => {
    isOver = true;
  });
  do {
    await Promise.race([all, hasEnded.promise]);
    // The others of a quick receiver are about to end, too.
    if (deliveries.length > 1) await Promise.race([all, context.wait(TOGETHER_MS)]);
    hasEnded = Promise.withResolvers();
    await record(ended.splice(0));
  } while (!isOver || ended.length > 0);
}

const Standing = z.pick(StoredDelivery, { id: true, state: true, attempt: true });

/** Those whose attempt has not been made. */
export async function standing(
  { table }: EventContext,
  deliveries: readonly StoredDelivery[],
): Promise<StoredDelivery[]> {
  const rows = await table.batchGet(
    deliveries.map((delivery) => keys.delivery(delivery.companyId, delivery.webhookId, delivery.id)),
    { fields: ["id", "state", "attempt"] },
  );
  const now = new Map(rows.map((row) => Standing.parse(row)).map((row) => [row.id, row]));
  return deliveries.filter(({ id, attempt }) => now.get(id)?.state === "waiting" && now.get(id)?.attempt === attempt);
}

async function exchangeOf(context: EventContext, webhook: StoredWebhook, delivery: StoredDelivery): Promise<Made> {
  const body = await bodyToSend(context.table, delivery);
  const secrets = await openedSecrets(context.secrets, webhook);
  const startedMs = context.clock.now();
  const exchange = await context.post(requestOf(webhook.url, secrets, delivery, body, startedMs));
  return { delivery, startedMs, exchange };
}

/**
 * First the attempts, then what becomes of the deliveries: whoever finds one settled finds how that came to be. A success that was
 * answered in few words is one write: it stands in the delivery's row.
 */
async function recordAll(context: EventContext, webhook: StoredWebhook, made: readonly Made[]): Promise<void> {
  if (made.length === 0) return;
  await context.table.batchPut(made.filter((one) => !isShortSuccess(one)).map(attemptItem));
  for (const { delivery, exchange } of made) {
    const { id: deliveryId, attempt } = delivery;
    const { status, latencyMs } = exchange;
    log.info("attempted", { deliveryId, attempt, status, ms: Math.round(latencyMs), result: resultOf(exchange) });
  }
  const exchanges = made.map(({ exchange }) => exchange);
  await noteHealth(
    context,
    webhook,
    exchanges.filter(({ isUnsent }) => isUnsent !== true),
  );
  const concluded = made.map((one) => ({ one, ...conclude(context, one) }));
  const updates = concluded.map(({ one, change }) => ({ ...whileAttemptStands(one.delivery, change), one }));
  const refused = await updateEach(context.table, updates);
  // Of a delivery that others have moved on meanwhile, the attempt is told by itself.
  await context.table.batchPut(refused.flatMap(({ one }) => (isShortSuccess(one) ? [attemptItem(one)] : [])));
  await enqueue(
    context,
    concluded.flatMap(({ next }) => next ?? []),
  );
}

/** Bytes of an answer that leave the delivery's row as small as most are. */
const SHORT = 100;
/** Successes in a row: of one that is sent again and again the others have rows of their own. */
const FEW = 5;
const isShortSuccess = ({ delivery: { successes = [] }, exchange }: Made): boolean =>
  isSuccess(exchange) && Buffer.byteLength(exchange.answer) <= SHORT && successes.length < FEW;

const attemptOf = ({ delivery, startedMs, exchange }: Made): Attempt => ({
  number: delivery.attempt,
  startedAt: iso(startedMs),
  latencyMs: Math.round(exchange.latencyMs),
  status: exchange.status,
  error: exchange.error,
  answer: exchange.answer,
  ...(exchange.isUnsent && { isUnsent: exchange.isUnsent }),
});

function attemptItem(made: Made) {
  const { companyId, webhookId, id, attempt, expiresAt } = made.delivery;
  const record: StoredAttempt = { type: "attempt", ...attemptOf(made), expiresAt };
  return { ...keys.attempt(companyId, webhookId, id, attempt), ...record };
}

interface Conclusion {
  readonly change: Change;
  /** The delivery as it is planned again. */
  readonly next?: StoredDelivery;
}

/** A failure is planned again until the plan has no more attempts. What never left for all of that time is not planned again. */
function conclude({ clock, timeScale }: EventContext, made: Made): Conclusion {
  const { delivery, exchange } = made;
  const now = clock.now();
  if (isSuccess(exchange)) {
    const successes = isShortSuccess(made) ? [...(delivery.successes ?? []), attemptOf(made)] : undefined;
    const { set, ...change } = settled("delivered", now);
    return { change: { ...change, set: { ...set, successes } } };
  }
  if (exchange.isUnsent === true) return { change: settled("exhausted", now) };
  const failed = delivery.attempt - delivery.planFrom + 1;
  const gap = nextGapMs(delivery.id, failed, exchange.retryAfter, now, timeScale);
  if (gap === undefined) return { change: settled("exhausted", now) };
  const planned = { attempt: delivery.attempt + 1, dueAt: iso(now + gap), dueShard: keys.dueShard(delivery.id) };
  return { change: { set: { ...planned, updatedAt: iso(now) } }, next: { ...delivery, ...planned } };
}
