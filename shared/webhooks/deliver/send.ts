/** Sends deliveries of one webhook that share a slot. Pauses a webhook whose receiver is gone or has failed for days. */
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { all, type Change, type Condition, equals, exists, missing, present } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import * as limits from "#shared/limits.ts";
import { log } from "#shared/log.ts";
import type { Exchange } from "#shared/outbound/post.ts";
import { addToThrottledBacklog } from "#shared/webhooks/deliver/backlogs.ts";
import { requestOf } from "#shared/webhooks/deliver/request.ts";
import { type Attempt, type StoredAttempt, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { bodyToSend } from "#shared/webhooks/events/debounce.ts";
import {
  FULL_MS,
  freeSlot,
  readLimiter,
  releaseSlot,
  releaseUnsent,
  type SlotClaim,
} from "#shared/webhooks/limiter/limiter.ts";
import { enqueue } from "#shared/webhooks/messages.ts";
import { nextGapMs, UNSENT_MS } from "#shared/webhooks/retry-plan.ts";
import { guarded, type Left, settled, updateEach, updateIf, whilePending } from "#shared/webhooks/settle.ts";
import type { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";
import { openedSecrets } from "#shared/webhooks/subscriptions/secret.ts";

/** If exchanges end within this many milliseconds after the first one, one write records them together. */
const TOGETHER_MS = 100;

interface Made {
  readonly delivery: StoredDelivery;
  readonly startedMs: number;
  readonly exchange: Exchange;
}

export async function sendWithSlot(
  context: EventContext,
  webhook: StoredWebhook,
  deliveries: readonly StoredDelivery[],
  slot: string,
): Promise<readonly Left[]> {
  const { companyId, id: webhookId } = webhook;
  const claim = { companyId, webhookId, ids: deliveries.map(({ id }) => id) };
  // The rows are read again, because another sender may have made the attempts before this sender took the slot.
  const due = await pendingOf(context, deliveries);
  const exchanges: Exchange[] = [];
  const unsent: StoredDelivery[] = [];
  const left = await exchangeAll(context, webhook, due, (made) => {
    const isOver = (one: Made): boolean => one.exchange.isUnsent !== true || isGivenUp(context, one.delivery);
    const ended = made.filter(isOver);
    unsent.push(...made.filter((one) => !isOver(one)).map(({ delivery }) => delivery));
    exchanges.push(...made.filter(({ exchange }) => exchange.isUnsent !== true).map(({ exchange }) => exchange));
    const recorded = ended.map(({ delivery }) => delivery);
    return guarded(recorded, () => recordAll(context, webhook, ended));
  });
  const observed = exchanges.map((exchange) => ({ isSuccess: isSuccess(exchange), latencyMs: exchange.latencyMs }));
  if (observed.length > 0) await releaseSlot(context, claim, slot, observed);
  if (unsent.length > 0) {
    const ownSlot = observed.length === 0 ? slot : undefined;
    return [...left, ...(await guarded(unsent, () => backOff(context, claim, unsent, ownSlot)))];
  }
  if (observed.length === 0) await freeSlot(context, claim, slot, {});
  return left;
}

/** Makes all exchanges concurrently. A request without an answer does not delay the recording of the other exchanges. */
async function exchangeAll(
  context: EventContext,
  webhook: StoredWebhook,
  deliveries: readonly StoredDelivery[],
  record: (made: readonly Made[]) => Promise<readonly Left[]>,
): Promise<readonly Left[]> {
  const ended: Made[] = [];
  let hasEnded = Promise.withResolvers<void>();
  const exchanges = deliveries.map((delivery) =>
    guarded([delivery], async () => {
      ended.push(await exchangeOf(context, webhook, delivery));
      hasEnded.resolve();
      return [];
    }),
  );
  let isOver = false;
  const all = Promise.all(exchanges).finally(() => {
    isOver = true;
  });
  const left: Left[] = [];
  do {
    await Promise.race([all, hasEnded.promise]);
    if (deliveries.length > 1) await Promise.race([all, context.wait(TOGETHER_MS)]);
    hasEnded = Promise.withResolvers();
    left.push(...(await record(ended.splice(0))));
  } while (!isOver || ended.length > 0);
  return [...left, ...(await all).flat()];
}

const Pending = z.pick(StoredDelivery, { id: true, state: true, attempt: true });

/** Reads the deliveries again. Returns those whose planned attempt has not been made yet. */
export async function pendingOf(
  { table }: EventContext,
  deliveries: readonly StoredDelivery[],
): Promise<StoredDelivery[]> {
  const rows = await table.batchGet(
    deliveries.map((delivery) => keys.delivery(delivery.companyId, delivery.webhookId, delivery.id)),
    { fields: Object.keys(Pending.shape) },
  );
  const now = new Map(rows.map((row) => Pending.parse(row)).map((row) => [row.id, row]));
  return deliveries.filter(({ id, attempt }) => now.get(id)?.state === "waiting" && now.get(id)?.attempt === attempt);
}

async function exchangeOf(context: EventContext, webhook: StoredWebhook, delivery: StoredDelivery): Promise<Made> {
  const body = await bodyToSend(context.table, delivery);
  const secrets = await openedSecrets(context.secrets, webhook);
  const startedMs = context.clock.now();
  const exchange = await context.post(requestOf(webhook.url, secrets, delivery, body, startedMs));
  return { delivery, startedMs, exchange };
}

/** Records attempts before the states of their deliveries, so that an ended delivery has its attempts. */
async function recordAll(context: EventContext, webhook: StoredWebhook, made: readonly Made[]): Promise<[]> {
  if (made.length === 0) return [];
  await context.table.batchPut(made.filter((one) => !isShortSuccess(one)).map(attemptItem));
  for (const { delivery, exchange } of made) {
    const { id: deliveryId, attempt, companyId, webhookId } = delivery;
    const { status, latencyMs } = exchange;
    const answer = { status, ms: Math.round(latencyMs), result: resultOf(exchange) };
    log.info("attempted", { companyId, webhookId, deliveryId, attempt, ...answer });
  }
  const exchanges = made.map(({ exchange }) => exchange).filter(({ isUnsent }) => isUnsent !== true);
  await noteHealth(context, webhook, exchanges);
  const concluded = made.map((one) => ({ one, ...conclude(context, one) }));
  const updates = concluded.map(({ one, change }) => ({ ...whilePending(one.delivery, change), one }));
  const refused = await updateEach(context.table, updates);
  // If the update of its delivery fails, a short success is stored nowhere, so it gets a separate row.
  await context.table.batchPut(refused.flatMap(({ one }) => (isShortSuccess(one) ? [attemptItem(one)] : [])));
  return enqueue(
    context,
    concluded.flatMap(({ next }) => next ?? []),
  );
}

/** Maximum bytes of an answer that is stored in the delivery's row. */
const SHORT = 100;
/** Maximum number of successes in the delivery's row. Further ones have separate rows. */
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
  isUnsent: exchange.isUnsent,
});

function attemptItem(made: Made) {
  const { companyId, webhookId, id, attempt, expiresAt } = made.delivery;
  const record: StoredAttempt = { type: "attempt", ...attemptOf(made), expiresAt };
  return { ...keys.attempt(companyId, webhookId, id, attempt), ...record };
}

interface Conclusion {
  readonly change: Change;
  readonly next?: StoredDelivery;
}

/** A success ends the delivery as delivered. A failure plans the next attempt, or ends the delivery as exhausted after the last one. */
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

/**
 * Moves deliveries whose requests could not be sent into the throttled backlog. They lose no attempt, and the circuit breaker counts no
 * failure. Pass `slot` only if no request of the slot could be sent. The slot is then freed, and requests to the webhook stop for a while.
 */
async function backOff(
  context: EventContext,
  claim: SlotClaim,
  deliveries: readonly StoredDelivery[],
  slot: string | undefined,
): Promise<Left[]> {
  const { companyId, webhookId } = claim;
  const until = slot === undefined ? iso(context.clock.now() + FULL_MS) : await releaseUnsent(context, claim, slot);
  log.warn("not sent", { companyId, webhookId, deliveries: deliveries.length, until });
  await addToThrottledBacklog(context, deliveries, { kind: "open", until }, await readLimiter(context, claim));
  return deliveries.map(({ id }) => ({ id, isThrottled: true }));
}

/** Returns true if the service has been unable to send the request for as long as a whole retry plan takes. */
const isGivenUp = ({ clock, timeScale }: EventContext, { dueAt }: StoredDelivery): boolean =>
  (clock.now() - Date.parse(dueAt)) * timeScale >= UNSENT_MS;

const isSuccess = ({ status }: Exchange): boolean => status !== null && status >= 200 && status < 300;

/** Returns the result for a log line. There are only a few different results, because a query over the logs counts the lines of each. */
function resultOf({ status, isUnsent }: Exchange): string {
  if (isUnsent === true) return "unsent";
  if (status === null) return "no answer";
  if (status >= 300 && status < 500) return "refused";
  return `${Math.floor(status / 100)}xx`;
}

const GONE = 410;

/**
 * Pauses a webhook after 410 Gone, or after five days without success. If the exchanges have different results, one decides: a 410 if there
 * is any, otherwise a success, otherwise the first exchange.
 */
async function noteHealth(
  context: EventContext,
  webhook: StoredWebhook,
  exchanges: readonly Exchange[],
): Promise<void> {
  const exchange = exchanges.find(({ status }) => status === GONE) ?? exchanges.find(isSuccess) ?? exchanges[0];
  if (exchange === undefined) return;
  const { id, companyId, failingSince } = webhook;
  const change = (changed: Change, when: Condition) =>
    updateIf(context, { update: keys.webhook(companyId, id), change: changed, when: all(present, when) });
  if (isSuccess(exchange)) {
    if (failingSince !== undefined) await change({ remove: ["failingSince"] }, exists("failingSince"));
    return;
  }
  const now = context.clock.now();
  const failingMs = failingSince === undefined ? 0 : now - Date.parse(failingSince);
  if (exchange.status === GONE || failingMs * context.timeScale >= limits.failingMs) {
    const paused = { status: "paused", updatedAt: iso(now), dueShard: keys.pausedWebhooksShard(), dueAt: iso(now) };
    await change({ set: paused }, equals("status", "active"));
    log.warn("webhook paused", { companyId, webhookId: id, status: exchange.status, failingMs });
  } else if (failingSince === undefined) {
    await change({ set: { failingSince: iso(now) } }, missing("failingSince"));
  }
}
