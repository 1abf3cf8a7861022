/**
 * Runs publisher, sender and sweeper in one process on a real table, with a simulated queue, receiver and clock. A test can kill the
 * process at any of its calls to the table, the queue or the receiver.
 */
import { setImmediate as turn } from "node:timers/promises";
import { expect } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import type { Queued } from "#shared/aws/sqs.ts";
import { type ApiContext, contextOn, type EventContext } from "#shared/context.ts";
import type { Table } from "#shared/db/table.ts";
import type { Exchange, Post } from "#shared/outbound/post.ts";
import { secretsOn } from "#shared/secrets/secrets.ts";
import { consume as consumeBatch } from "#shared/webhooks/deliver/consume.ts";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import type { RowChange } from "#shared/webhooks/events/row-events.ts";
import type { QueueMessage } from "#shared/webhooks/messages.ts";
import { sweep } from "#shared/webhooks/reconcile/sweep.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { calledBy, Killed, killable, unlessKilled, untilDone } from "../harness/killable.ts";
import { killPointsOf } from "../harness/kills.ts";
import { createRegistration, createWebhook, pauseWebhook, resumeWebhook } from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";
import { accepted, allowLoopback, automatic, creation, quietContext, START } from "./fixtures.ts";

/** Milliseconds until SQS makes a failed message visible again: six times the time-out of the deliverer. */
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
  /** Number of posts that had begun at the kill. The service may repeat only these, because their results may not be recorded. */
  postsWhenKilled: number;
  /** Work of another process, which runs just before call number `at`. */
  meanwhile: { readonly at: number; readonly work: () => Promise<unknown> } | undefined;
  answers: (post: Post, number: number) => Partial<Exchange>;
  readonly pause: () => ReturnType<typeof pauseWebhook>;
  readonly resume: () => ReturnType<typeof resumeWebhook>;
}

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
        return { ...accepted, ...made.answers(post, posts.length) };
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
    pause: () => pauseWebhook(made.api, companyId, webhook.id),
    resume: () => resumeWebhook(made.api, context.queue, companyId, webhook.id),
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

/** Publishes the changes in one batch of the stream. */
export const publishIn = (context: EventContext, ...changes: RowChange[]): Promise<void> =>
  publishChanges(context, batchReads(context), changes);

export const publish = (at: Pipeline): Promise<void> => publishIn(killable(at.context), at.change);

export const publishIds = (at: Pipeline, ids: readonly number[]): Promise<void> =>
  publishIn(killable(at.context), ...ids.map((id) => creation(at.companyId, id)));

interface KilledWork<At extends Pipeline> {
  readonly stage: () => Promise<At>;
  readonly run: (at: At) => Promise<unknown>;
  /** The parameters `turn` of `killPointsOf`, which choose the calls for the kills before and after a call takes effect. */
  readonly turns?: readonly [before: number, after: number];
  readonly withQueue?: Kill["withQueue"];
}

/**
 * Runs the work without a kill, and then again for each chosen call, with a kill before and with a kill after this call takes effect.
 * Checks each killed pipeline. `place` names the kill in the messages of failed tests, `calls` are the calls of the run without a kill,
 * `number` is the position of the killed call among them, and `isAfter` is true if this call took effect. Returns the pipeline without a
 * kill.
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

/** Publishes the change, and repeats this after each kill, as Lambda does with a stream record. */
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
