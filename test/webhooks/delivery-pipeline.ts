/**
 * Runs publisher, sender and sweeper in one process on a real table, with a simulated queue, receiver and clock. A test can kill the
 * process at any of its calls to them or to the table.
 */
import { setImmediate as turn } from "node:timers/promises";
import { expect } from "vitest";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { Queued } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import { type ApiContext, contextOn, type EventContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { DELIVERY_SHARDS } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import type { Exchange, Post } from "#shared/outbound/post.ts";
import { prospectItem, type StoredProspect } from "#shared/prospects/stored.ts";
import { secretsOn } from "#shared/secrets/secrets.ts";
import { consume as consumeBatch } from "#shared/webhooks/deliver/consume.ts";
import { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import type { RowChange } from "#shared/webhooks/events/row-events.ts";
import type { QueueMessage } from "#shared/webhooks/messages.ts";
import { type Reconciliation, reconcile } from "#shared/webhooks/reconcile/reconcile.ts";
import { sweep } from "#shared/webhooks/reconcile/sweep.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { calledBy, Killed, killable, unlessKilled, untilDone } from "../harness/killable.ts";
import { killPointsOf } from "../harness/kills.ts";
import { prospectRow } from "../harness/prospect-row.ts";
import { createRegistration, createWebhook, pauseWebhook, resumeWebhook } from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";

export const START = Date.UTC(2026, 5, 1);
/** SQS makes a failed message visible again after six times the time-out of the deliverer. */
const VISIBILITY_MS = 90_000;

/** A kill at call number `at` to the table, the queue or the receiver, before or after the call takes effect. */
interface Kill {
  readonly at: number;
  readonly when: "before" | "after";
  /** The queue loses all its messages at the kill. */
  readonly withQueue?: true;
}

export interface Pipeline {
  readonly db: FaultyDynamoDb;
  readonly caller: Caller;
  readonly companyId: number;
  readonly webhookId: number;
  readonly registrationId: number;
  readonly change: RowChange;
  readonly context: EventContext;
  /** The context of API requests, which are never killed. */
  readonly api: ApiContext;
  /** The waiting messages. `at` is the time at which a message becomes visible. */
  readonly queue: { message: QueueMessage; at: number; isRepeat: boolean }[];
  readonly posts: Post[];
  /** Names of the calls so far. */
  readonly calls: string[];
  clock: number;
  kill: Kill | undefined;
  /** Posts that had begun at the kill. The service may repeat only these, because their results may not be recorded. */
  postsWhenKilled: number;
  /** Work of another process, which runs just before call number `at`. */
  meanwhile: { readonly at: number; readonly work: () => Promise<unknown> } | undefined;
  answers: (post: Post, number: number) => Partial<Exchange>;
}

export const automatic = (event: string, delayMinutes = 0) => ({
  event,
  filter: null,
  delayMinutes,
  triggerMode: "automatic" as const,
  manualTriggerButtonText: null,
});

export const manual = (event: string, delayMinutes = 0) => ({
  ...automatic(event, delayMinutes),
  triggerMode: "manual" as const,
  manualTriggerButtonText: "Send",
});

/** Allows webhook URLs with loopback addresses. */
export function allowLoopback(): void {
  process.env.WEBHOOK_URL_POLICY = "local";
}

const never = () => Promise.reject(new Error("the tested function must not call this"));

/** The context of a function that only uses the table and sends queue messages. */
export const quietContext = (
  table: EventContext["table"],
  clock: EventContext["clock"],
  send: EventContext["queue"]["send"],
): EventContext => ({
  ...{ table, clock, timeScale: 1, senders: 10, secrets: { open: never }, wait: never },
  ...{ queue: { returnIn: never, send }, post: never, savePoisonRecord: never },
});

/** Creates a company with a webhook, one registration, and a change of a prospect that matches it. */
export async function newPipeline(db: FaultyDynamoDb, event = "prospect.created", delayMinutes = 0): Promise<Pipeline> {
  const time = { now: () => made.clock };
  const plain = contextOn(db.direct, { now: () => START });
  allowLoopback();
  const caller = await newOwner(plain);
  const { companyId } = caller;
  const webhook = await createWebhook(plain, companyId, { name: "x", url: "http://127.0.0.1:1/", registrations: [] });
  const { id: registrationId } = await createRegistration(plain, companyId, webhook.id, automatic(event, delayMinutes));
  const queue: Pipeline["queue"] = [];
  const posts: Post[] = [];
  const calls: string[] = [];
  const table = calledBy((work, name) => runOrKill(name, work), db.direct);
  const context: EventContext = {
    ...quietContext(table, time, (entries: readonly Queued<QueueMessage>[]) =>
      runOrKill("send", async () => enqueue(entries)),
    ),
    // No kill happens at calls to the key service. secrets.test.ts tests these kills.
    secrets: secretsOn(db.direct),
    wait: () => turn(),
    post: (post) =>
      runOrKill("post", async () => {
        posts.push(post);
        return {
          status: 200,
          error: null,
          answer: "",
          retryAfter: undefined,
          latencyMs: 1,
          ...made.answers(post, posts.length),
        };
      }),
  };
  const made: Pipeline = {
    db,
    caller,
    companyId,
    webhookId: webhook.id,
    registrationId,
    change: creation(companyId, 4_711),
    context,
    api: contextOn(db.direct, time),
    queue,
    posts,
    calls,
    clock: START,
    kill: undefined,
    postsWhenKilled: 0,
    meanwhile: undefined,
    answers: () => ({}),
  };
  return made;

  function enqueue(entries: readonly Queued<QueueMessage>[]): void {
    for (const { message, delaySeconds } of entries) {
      queue.push({ message, at: made.clock + delaySeconds * 1_000, isRepeat: false });
    }
  }
  async function runOrKill<T>(name: string, call: () => Promise<T>): Promise<T> {
    calls.push(name);
    const { kill, meanwhile } = made;
    if (meanwhile?.at === calls.length) await meanwhile.work();
    const isHit = kill !== undefined && kill.at === calls.length;
    if (isHit && kill.when === "before") throw killed();
    const result = await call();
    if (isHit) throw killed();
    return result;
  }
  function killed(): Killed {
    made.postsWhenKilled = calls.filter((call) => call === "post").length;
    return new Killed();
  }
}

export const createdProspect = (companyId: number, id: number): StoredProspect =>
  prospectRow({ companyId, id, name: "Ada", source: "api", createdAt: iso(START), updatedAt: iso(START) });

export const createdItem = (companyId: number, id: number): Item => prospectItem(createdProspect(companyId, id));

export function creation(companyId: number, id: number, atMs = START): RowChange {
  const dated = { createdAt: iso(atMs), updatedAt: iso(atMs) };
  return { before: undefined, after: prospectItem({ ...createdProspect(companyId, id), ...dated }) };
}

/**
 * Returns the change of a prospect's name by a bulk job. `marked` is the version of the row that the job has written. If it differs from
 * `version`, somebody has changed the row again after the job.
 */
export function bulkChange(
  companyId: number,
  id: number,
  {
    version = 2,
    marked = version,
    updatedAt = iso(START),
  }: { version?: number; marked?: number; updatedAt?: string } = {},
): RowChange {
  const before = { ...createdProspect(companyId, id), version: version - 1 };
  const bulk = { jobId: 77, events: "each" as const, version: marked, before: {}, after: {} };
  const after = { ...before, name: `name ${version}`, version, updatedAt, bulk };
  return { before: prospectItem(before), after: prospectItem(after) };
}

/** Publishes the changes in one batch of the stream. */
export const publishIn = (context: EventContext, ...changes: RowChange[]): Promise<void> =>
  publishChanges(context, batchReads(context), changes);

export const publish = (at: Pipeline): Promise<void> => publishIn(killable(at.context), at.change);

export const publishIds = (at: Pipeline, ids: readonly number[]): Promise<void> =>
  publishIn(killable(at.context), ...ids.map((id) => creation(at.companyId, id)));

interface KilledWork<At extends Pipeline> {
  readonly stage: () => Promise<At>;
  readonly run: (at: At) => Promise<unknown>;
  /** Chooses the calls for the kills before and after them, as in `killPointsOf`. */
  readonly turns?: readonly [before: number, after: number];
  readonly withQueue?: Kill["withQueue"];
}

/**
 * Runs the work on a pipeline without a kill, and again for each chosen call with a kill before and with a kill after this call takes
 * effect. Checks each killed pipeline: `place` names the kill in the messages of failed tests, `number` is the number of its call in
 * `calls`, the calls without a kill, and `isAfter` says that the call has taken effect. Returns the pipeline without a kill.
 */
export async function killedAtEach<At extends Pipeline>(
  { stage, run, turns: [before, after] = [0, 2], withQueue }: KilledWork<At>,
  check: (at: At, place: string, number: number, calls: readonly string[], isAfter: boolean) => Promise<unknown>,
): Promise<At> {
  const calm = await stage();
  await run(calm);
  for (const [when, turn] of [["before", before] as const, ["after", after] as const]) {
    for (const number of killPointsOf(calm.calls.length, turn)) {
      const at = await stage();
      at.kill = { at: number, when, ...(withQueue && { withQueue }) };
      await run(at);
      await check(at, `${when} ${calm.calls[number - 1]} (${number})`, number, calm.calls, when === "after");
    }
  }
  return calm;
}

export const pause = (at: Pipeline) => pauseWebhook(at.api, at.companyId, at.webhookId);
export const resume = (at: Pipeline) => resumeWebhook(at.api, at.context.queue, at.companyId, at.webhookId);

/** Publishes the change again after each kill, as Lambda does with a stream record. */
export const publishUntilDone = (at: Pipeline): Promise<void> => untilDone(() => publish(at));

export async function consume(at: Pick<Pipeline, "context">, message: QueueMessage, isRepeat: boolean): Promise<void> {
  const [end] = await consumeBatch(killable(at.context), [{ message, isRepeat }]);
  if (end?.status === "rejected") throw end.reason;
}

/** Processes the messages one after the other until the queue is empty. The clock advances to the time of each message. */
export async function drain(at: Pipeline, maxSteps = 1_000): Promise<void> {
  for (let steps = 0; at.queue.length > 0; steps++) {
    if (steps > maxSteps) throw new Error("the queue does not come to rest");
    at.queue.sort((a, b) => a.at - b.at);
    const next = at.queue.shift();
    if (next === undefined) return;
    at.clock = Math.max(at.clock, next.at);
    try {
      await consume(at, next.message, next.isRepeat);
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
      if (at.kill?.withQueue) at.queue.length = 0;
      else at.queue.push({ message: next.message, at: at.clock + VISIBILITY_MS, isRepeat: true });
    }
  }
}

/** Processes all visible messages concurrently, until the queue is empty. */
export async function drainTogether(at: Pipeline, maxSteps = 1_000): Promise<void> {
  for (let steps = 0; at.queue.length > 0; steps++) {
    if (steps > maxSteps) throw new Error("the queue does not come to rest");
    at.clock = Math.max(at.clock, Math.min(...at.queue.map((entry) => entry.at)));
    const visible = at.queue.filter((entry) => entry.at <= at.clock);
    at.queue.splice(0, at.queue.length, ...at.queue.filter((entry) => entry.at > at.clock));
    const ends = await Promise.allSettled(visible.map(({ message, isRepeat }) => consume(at, message, isRepeat)));
    for (const [i, end] of ends.entries()) {
      const entry = visible[i];
      if (end.status === "fulfilled" || entry === undefined) continue;
      if (!(end.reason instanceof Killed)) throw end.reason;
      at.queue.push({ ...entry, at: at.clock + VISIBILITY_MS, isRepeat: true });
    }
  }
}

/** Runs the sweeper on the due rows of this company, because the tests of a file share one table. */
export function sweepOwn({ context, companyId }: Pick<Pipeline, "context" | "companyId">): Promise<number> {
  const { table } = context;
  const own: Table = {
    ...table,
    query: async function* (spec) {
      for await (const item of table.query(spec)) {
        if (spec.index === undefined || String(item.pk).startsWith(`C#${companyId}#`)) yield item;
      }
    },
  };
  return sweep({ ...context, table: own }, { assume: "messages-kept" });
}

/**
 * Processes the queue and runs the sweeper in each of the next minutes. Without a kill, the sweeper must find no delivery without a
 * message, because the service must have sent the message itself.
 */
export async function settleFor(at: Pipeline, minutes: number, empty = drain): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    await empty(at);
    at.clock += 60_000;
    await sweepOwn(at).catch(unlessKilled);
    if (at.kill === undefined) expect(sweptIn(at), `minute ${minute}: deliveries without a message`).toEqual([]);
  }
  await empty(at);
}

const sweptIn = ({ queue }: Pipeline): string[] =>
  queue.flatMap(({ message }) => ("deliveryId" in message ? [message.deliveryId] : []));

type OfWebhook = Pick<Pipeline, "companyId" | "webhookId">;

export const putLimiter = (db: FaultyDynamoDb, { companyId, webhookId }: OfWebhook, fields: object = {}) =>
  db.direct.batchPut([
    { ...limiterKeys.limiter(companyId, webhookId), type: "limiter", companyId, webhookId, ...fields },
  ]);
export const limiterRowOf = (db: FaultyDynamoDb, { companyId, webhookId }: OfWebhook) =>
  db.direct.get(limiterKeys.limiter(companyId, webhookId));

/** The ids of the prospects in the bodies of all posts. */
export const sentIds = ({ posts }: Pick<Pipeline, "posts">): number[] =>
  posts.map(({ body }) => JSON.parse(body).data.prospect.id);
export const statesOf = async (at: Pipeline) => (await deliveries(at)).map(({ state }) => state);
export const deliveries = ({ db, ...hook }: Pipeline): Promise<StoredDelivery[]> => deliveriesOf(db, hook);

export async function deliveriesOf(db: FaultyDynamoDb, { companyId, webhookId }: OfWebhook): Promise<StoredDelivery[]> {
  const found: StoredDelivery[] = [];
  for (let shard = 0; shard < DELIVERY_SHARDS; shard++) {
    const { pk } = keys.deliveryShard(companyId, webhookId, shard);
    for await (const item of db.direct.query({ pk })) {
      if (item.type === "delivery") found.push(z.parse(StoredDelivery, item));
    }
  }
  return found;
}

type Kept = Pick<Pipeline, "db" | "companyId" | "clock">;

/** Runs reconciliation without its repeated checks, because nothing writes concurrently. */
export const reconcileNow = ({ db, companyId, clock }: Kept): Promise<Reconciliation> =>
  reconcile({ table: db.direct, clock: { now: () => clock } }, companyId, { again: 0, wait: () => Promise.resolve() });

/** Expects that reconciliation finds no fault, and returns the counts. The message of a failed test contains `place`. */
export async function expectReconciled(at: Kept, place?: string): Promise<Omit<Reconciliation, "faults">> {
  const { faults, ...counts } = await reconcileNow(at);
  expect(faults, place).toEqual([]);
  const { matched, delivered, waiting, exhausted, cancelled } = counts;
  expect(matched, place).toBe(delivered + waiting + exhausted + cancelled);
  return counts;
}
