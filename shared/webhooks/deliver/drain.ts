/**
 * Sends the deliveries that wait for a webhook, in steps of one page (`PAGE`): its paused backlog, its throttled backlog, or a replay. A
 * lease allows one step at a time, so a large backlog occupies only one function. A step sends the message for the next step.
 */
import * as z from "zod/mini";
import { allEnded } from "#shared/all-ended.ts";
import { delaySecondsUntil } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { all, type Change, type Condition, equals, exists } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { type Lease, whileHeld } from "#shared/db/lease.ts";
import type { Table } from "#shared/db/table.ts";
import { limiterKeys, replayKeys } from "#shared/db/webhook-keys.ts";
import { addToPausedBacklog, resumeDelivery } from "#shared/webhooks/deliver/backlogs.ts";
import { attemptDeliveries } from "#shared/webhooks/deliver/deliver.ts";
import { replayPage, StoredReplay } from "#shared/webhooks/deliver/replay.ts";
import { StoredDelivery } from "#shared/webhooks/delivery.ts";
import {
  FULL_MS,
  LEASE_MS,
  type Limiter,
  readLimiter,
  StoredLimiter,
  slotLimit,
  takesBatches,
} from "#shared/webhooks/limiter/limiter.ts";
import { type DrainMessage, messageFor } from "#shared/webhooks/messages.ts";
import { cancel } from "#shared/webhooks/settle.ts";
import { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

/** A step may begin this many milliseconds early, because SQS delays messages by whole seconds and the clocks of functions differ. */
const EARLY_MS = 1_000;
/** Upper bound for the lag of the due index. Only an index that stays empty for this time proves that the backlog is empty. */
const INDEX_LAG_MS = 10_000;
const PAGE = 50;
/** Maximum number of deliveries per second that a receiver gets from the paused backlog or a replay, besides new ones. */
const PER_SECOND = 10;

/** Returns the due time of the `n`-th delivery of a page, from 0. The value after the last delivery is the time of the next step. */
const pacedMs = (startMs: number, n: number): number => startMs + (n * 1_000) / PER_SECOND;

type Step =
  /** The next step runs at `nextMs`. `position` changes the row with the lease: what the next step must know, such as a replay's cursor. */
  | { readonly nextMs: number; readonly position?: Change }
  /**
   * No delivery waits any more: the drain ends. If `when` fails, a delivery has joined the backlog meanwhile, and the next step follows.
   */
  | { readonly end: Change; readonly when?: Condition };

/** Makes one step of the drain that the message names, unless another function holds the lease. */
export function drain(context: EventContext, message: DrainMessage): Promise<void> {
  const { companyId, webhookId } = message;
  if (message.drain === "paused") {
    const isOpen = all(equals("status", "active"), exists("dueAt"));
    const lease = { key: keys.webhook(companyId, webhookId), schema: StoredWebhook, attribute: "dueAt", isOpen };
    return makeStep(context, message, lease, drainPaused);
  }
  if (message.drain === "replay") {
    const key = replayKeys.replay(companyId, webhookId);
    const lease = { key, schema: StoredReplay, attribute: "dueAt", isOpen: exists("dueAt") };
    return makeStep(context, message, lease, drainReplay);
  }
  const key = limiterKeys.limiter(companyId, webhookId);
  const lease = { key, schema: StoredLimiter, attribute: "lookUntil", isOpen: exists("dueShard") };
  return makeStep(context, message, lease, drainThrottled);
}

/** A step may be repeated after a crash, so its writes must be idempotent. */
function makeStep<Row>(
  context: EventContext,
  message: DrainMessage,
  lease: Omit<Lease<Row>, "ms">,
  step: (context: EventContext, row: Row, startMs: number) => Promise<Step>,
): Promise<void> {
  const { clock, queue } = context;
  const startMs = clock.now();
  return whileHeld(context, { ...lease, ms: LEASE_MS, earlyMs: EARLY_MS }, {}, async (held) => {
    const done = await step(context, held.row, startMs);
    if ("end" in done && (await held.end(done.end, done.when))) return;
    const { nextMs, position = {} } = "end" in done ? { nextMs: clock.now() } : done;
    await held.release(nextMs, position);
    await queue.send([{ message, delaySeconds: delaySecondsUntil(nextMs, clock.now()) }]);
  });
}

/** Sends one page of the paused backlog. If the webhook is paused again, the condition of the lease fails, and the drain stops. */
async function drainPaused(context: EventContext, webhook: StoredWebhook, startMs: number): Promise<Step> {
  const [ordinary, bulk] = keys.pausedBacklogShards(webhook.companyId, webhook.id);
  const page = (await oldestIn(context.table, [ordinary])) ?? (await oldestIn(context.table, [bulk]));
  if (page === undefined && startMs - Date.parse(webhook.updatedAt) > INDEX_LAG_MS) {
    return { end: { remove: ["dueShard"] } };
  }
  for (const [i, delivery] of (page ?? []).entries()) await resumeDelivery(context, delivery, pacedMs(startMs, i));
  return { nextMs: pacedMs(startMs, PAGE) };
}

/** Makes one page of deliveries due. A step that is repeated after a crash skips those that it has already given the id of this replay. */
async function drainReplay(context: EventContext, replay: StoredReplay, startMs: number): Promise<Step> {
  const { count, cursor } = await replayPage(context, replay, PAGE, (n) => pacedMs(startMs, n));
  if (cursor === undefined) return { end: { remove: ["dueShard"] } };
  return { nextMs: pacedMs(startMs, count), position: { set: { cursor } } };
}

/**
 * Sends one page of the throttled backlog, unless the limiter forbids it for now (`openUntil`). The page may use all free slots of the
 * webhook. If the webhook is paused, moves the page to the paused backlog. If the webhook is deleted, cancels all its waiting deliveries,
 * page by page.
 */
async function drainThrottled(context: EventContext, limiter: StoredLimiter, startMs: number): Promise<Step> {
  const { companyId, webhookId, openUntil } = limiter;
  const item = await context.table.get(keys.webhook(companyId, webhookId));
  const status = item === undefined ? "deleted" : StoredWebhook.parse(item).status;
  if (status === "active" && openUntil !== undefined && openUntil > iso(startMs)) {
    return { nextMs: Date.parse(openUntil) };
  }
  const page = await throttledPage(context, limiter, status === "deleted");
  if (page === undefined) return endAfterLag(context, limiter);
  // The due index lags behind the rows: it may list deliveries that have left the backlog. The next step reads the index again.
  if (page.length === 0) return { nextMs: startMs + FULL_MS };
  if (status === "active") return { nextMs: await sendPage(context, limiter, page) };
  if (status === "deleted") await cancel(context, page);
  else for (const delivery of page) await addToPausedBacklog(context, delivery);
  return { nextMs: context.clock.now() };
}

/** Number of bulk jobs' deliveries on a page with other deliveries. Without this share, they would wait until no others are left. */
const BULK_BESIDE_OTHERS = 10;

/** Returns a page of the throttled backlog, or of both backlogs of a deleted webhook. Undefined if the due index has no entry for them. */
async function throttledPage(
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

const TOGETHER = 10;
/** A step begins no request later than this many milliseconds after its start. All requests then end before the function's time-out. */
const BEGIN_WITHIN_MS = 3_000;

/** Sends deliveries until none is left, the limiter refuses, or `BEGIN_WITHIN_MS` has passed. Returns the time of the next step. */
async function sendPage(
  context: EventContext,
  limiter: StoredLimiter,
  page: readonly StoredDelivery[],
): Promise<number> {
  const { openUntil: probed, slow } = limiter;
  const begun = context.clock.now();
  const size = takesBatches(limiter) ? TOGETHER : 1;
  let next = 0;
  let isFull = false;
  async function work(): Promise<void> {
    while (!isFull && next < page.length && context.clock.now() - begun < BEGIN_WITHIN_MS) {
      const some = page.slice(next, next + size);
      next += size;
      const batch = some.map((delivery) => ({ message: messageFor(delivery), isRepeat: false }));
      const left = await attemptDeliveries(context, batch);
      isFull ||= left.some((one) => "isThrottled" in one);
      for (const one of left) if ("error" in one) throw one.error;
    }
  }
  // After an open circuit breaker, the step sends one delivery at a time, to test the receiver.
  await allEnded(Array.from({ length: probed === undefined ? slotLimit(context.senders, slow) : 1 }, work));
  const now = context.clock.now();
  if (!isFull) return now;
  const { openUntil }: Limiter = await readLimiter(context, limiter);
  return openUntil !== undefined && openUntil > iso(now) ? Date.parse(openUntil) : now + FULL_MS;
}

/** Ends the drain when the index has been empty for `INDEX_LAG_MS`. Earlier, the index may lack a new delivery of the backlog. */
function endAfterLag({ clock }: EventContext, { emptySince }: StoredLimiter): Step {
  const now = clock.now();
  if (emptySince === undefined) return { nextMs: now + INDEX_LAG_MS, position: { set: { emptySince: iso(now) } } };
  const closeMs = Date.parse(emptySince) + INDEX_LAG_MS;
  if (now < closeMs) return { nextMs: closeMs };
  return { end: { remove: ["dueShard", "dueAt", "emptySince"] }, when: equals("emptySince", emptySince) };
}

const DueKey = z.object({ pk: z.string(), sk: z.string() });

/**
 * Returns at most one page of deliveries of each partition. Reads their rows, because the due index may still list deliveries that have
 * ended or moved to another partition. Returns undefined if the index has no entry.
 */
async function oldestIn(table: Table, shards: readonly string[]): Promise<StoredDelivery[] | undefined> {
  const found: Key[] = [];
  for (const pk of shards) {
    for await (const item of table.query({ pk, index: "due", limit: PAGE })) found.push(DueKey.parse(item));
  }
  if (found.length === 0) return undefined;
  const rows = (await table.batchGet(found)).map((row) => StoredDelivery.parse(row));
  return rows
    .filter(({ state, dueShard }) => state === "waiting" && dueShard !== undefined && shards.includes(dueShard))
    .sort((a, b) => (a.dueAt < b.dueAt ? -1 : a.dueAt > b.dueAt ? 1 : a.id < b.id ? -1 : 1));
}
