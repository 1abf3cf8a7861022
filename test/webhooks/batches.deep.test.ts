/** Tests that a fault of one event or queue message does not affect the other events or messages of its batch. */
import { setImmediate as turn } from "node:timers/promises";
import { marshall } from "@aws-sdk/util-dynamodb";
import type { DynamoDBRecord } from "aws-lambda";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { BucketUnavailable } from "#shared/errors.ts";
import type { Exchange, Post } from "#shared/outbound/post.ts";
import { consume } from "#shared/webhooks/deliver/consume.ts";
import { publishStream } from "#shared/webhooks/events/publish.ts";
import { backlogMark, LEASE_MS, slotLimit } from "#shared/webhooks/limiter/limiter.ts";
import { drainMessage } from "#shared/webhooks/messages.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { calledBy, Killed, killable, untilDone } from "../harness/killable.ts";
import { present } from "../harness/shapes.ts";
import { createRegistration, createWebhook } from "../harness/verbs.ts";
import { automatic, createdItem } from "./fixtures.ts";
import { killedAtEach, newPipeline, type Pipeline, publishIds, settleFor } from "./pipeline.ts";
import { deliveries, putLimiter, reconcileNow } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const IDS = [1, 2, 3, 4];
const TEN = Array.from({ length: 10 }, (_, i) => i + 1);
const timesPosted = (posts: readonly Post[]) =>
  [...Map.groupBy(posts, ({ headers }) => headers["X-Service-Delivery"] ?? "").values()].map(({ length }) => length);

const expectReconciled = async (at: Pipeline, matched: number): Promise<void> =>
  expect(await reconcileNow(at)).toMatchObject({ matched, delivered: matched, faults: [] });

/** Maximum number of messages in one call of the deliverer. */
const BATCH = 10;
const VISIBILITY_MS = 90_000;

/** Stores the state of a limiter whose receiver is quick. A sender then needs only one slot to send a whole batch. */
const beQuick = (at: Pipeline): Promise<void> => putLimiter(db, at, { used: 0, fails: 0, slow: false });

/** Simulates one call of the deliverer. Returns the number of failed messages: all of them, if the call is killed. */
async function consumeSome(at: Pipeline, entries: Pipeline["queue"]): Promise<number> {
  const ends = await consume(killable(at.context), entries);
  const isKilled = ends.some((end) => end.status === "rejected" && end.reason instanceof Killed);
  const back = entries.filter((_, i) => isKilled || ends[i]?.status !== "fulfilled");
  for (const { message } of back) at.queue.push({ message, at: at.clock + VISIBILITY_MS, isRepeat: true });
  return back.length;
}

async function drainBatches(at: Pipeline): Promise<void> {
  for (let steps = 0; at.queue.length > 0; steps++) {
    if (steps > 200) throw new Error("the queue does not come to rest");
    at.queue.sort((a, b) => a.at - b.at);
    at.clock = Math.max(at.clock, at.queue[0]?.at ?? 0);
    const visible = at.queue.findIndex((entry) => entry.at > at.clock);
    await consumeSome(at, at.queue.splice(0, Math.min(BATCH, visible === -1 ? BATCH : visible)));
  }
  // A killed call may still have work in progress, which ends in the next turn of the event loop.
  await turn();
}

test.each([true, false])(
  "a kill at each call of a batch leaves each delivery, sent twice only if a post was cut off, quick receiver: %s",
  { tags: "sized" },
  async (isQuick) => {
    const run = async (at: Pipeline): Promise<void> => {
      if (isQuick) await beQuick(at);
      await untilDone(() => publishIds(at, IDS));
      // If the publisher is killed before it sends the messages, the sweeper sends them.
      await settleFor(at, 2, drainBatches);
    };
    const undisturbed = await killedAtEach({ stage: () => newPipeline(db), run }, async (at, place) => {
      const posted = timesPosted(at.posts);
      expect(posted, place).toHaveLength(IDS.length);
      // A delivery is posted twice only if the kill comes after its post and before its result is recorded.
      expect(Math.max(...posted), place).toBeLessThanOrEqual(at.postsWhenKilled === 0 ? 1 : 2);
      await expectReconciled(at, IDS.length);
    });
    expect(timesPosted(undisturbed.posts)).toEqual([1, 1, 1, 1]);
    await expectReconciled(undisturbed, IDS.length);
  },
);

test("each delivery is posted once, although stream batches overlap and messages are repeated and shuffled", async () => {
  const at = await newPipeline(db);
  await beQuick(at);
  for (const ids of [[1, 2, 3], [2, 3, 4], [6, 5, 4, 1], [6]]) await publishIds(at, ids);
  at.queue.push(...at.queue.map((entry) => ({ ...entry })).toReversed());
  await drainBatches(at);
  await publishIds(at, [5, 6]);
  await drainBatches(at);
  expect(timesPosted(at.posts)).toEqual([1, 1, 1, 1, 1, 1]);
  await expectReconciled(at, 6);
});

test("no delivery is lost or sent twice if calls of the table take effect in part or lose their replies", async () => {
  const at = await newPipeline(db);
  await beQuick(at);
  // Every second answer is too long for the row of its delivery, so the attempts with these answers need rows of their own.
  at.answers = (_, number) => ({ answer: number % 2 === 0 ? "" : "x".repeat(200) });
  const disturbed: Pipeline = { ...at, context: { ...at.context, table: db.table } };
  const failures = new Map<string, number>();
  const batches = ["BatchExecuteStatement", "BatchWriteItem", "BatchGetItem"];
  db.plan((operation) => {
    const times = (failures.get(operation) ?? 0) + 1;
    failures.set(operation, times);
    if (times === 1 && batches.includes(operation)) return { kind: "part", share: 0.3 };
    return times < 3 ? { kind: "lose reply" } : pass;
  });
  await publishIds(disturbed, TEN);
  expect(await consumeSome(disturbed, at.queue.splice(0, 20))).toBe(0);
  db.plan(() => pass);
  for (const operation of [...batches, "TransactWriteItems", "UpdateItem"]) {
    expect(failures.get(operation), operation).toBeGreaterThan(1);
  }
  await drainBatches(at);
  expect(timesPosted(at.posts)).toEqual(TEN.map(() => 1));
  await expectReconciled(at, 10);
});

/** Returns a context whose receiver answers the chosen posts only when the test resolves `answer`. */
function hanging(at: Pipeline, isHanging: (post: Post) => boolean) {
  const answer = Promise.withResolvers<void>();
  const post = async (sent: Post): Promise<Exchange> => {
    at.posts.push(sent);
    if (isHanging(sent)) await answer.promise;
    return { status: 200, error: null, answer: "", retryAfter: undefined, latencyMs: isHanging(sent) ? 10_000 : 1 };
  };
  return { context: { ...at.context, post }, answer };
}

const untilDelivered = (at: Pipeline, count: number) =>
  expect
    .poll(async () => (await deliveries(at)).filter(({ state }) => state === "delivered").length, { timeout: 120_000 })
    .toBe(count);

describe("a receiver that hangs during one post does not delay", () => {
  test("nine deliveries of other webhooks, which are recorded and settled meanwhile", async () => {
    const at = await newPipeline(db, "prospect.deleted");
    const hooks: number[] = [];
    for (const i of TEN) {
      const url = `http://127.0.0.1:1/${i === 5 ? "hangs" : i}`;
      const { id } = await createWebhook(at.api, at.companyId, { name: "x", url, registrations: [] });
      await createRegistration(at.api, at.companyId, id, automatic("prospect.created"));
      hooks.push(id);
    }
    await publishIds(at, [1]);
    const { context, answer } = hanging(at, ({ url }) => url.endsWith("hangs"));
    const batch = at.queue.splice(0);
    expect(batch).toHaveLength(10);
    const ends = consume(context, batch);
    for (const webhookId of hooks.filter((_, i) => i !== 4)) await untilDelivered({ ...at, webhookId }, 1);
    expect((await deliveries({ ...at, webhookId: hooks[4] ?? 0 }))[0]?.state).toBe("waiting");
    answer.resolve();
    expect((await ends).map(({ status }) => status)).toEqual(TEN.map(() => "fulfilled"));
    await expectReconciled(at, 10);
  });

  test("nine other deliveries of its webhook, which are recorded and settled meanwhile", async () => {
    const at = await newPipeline(db);
    await beQuick(at);
    await publishIds(at, TEN);
    const { context, answer } = hanging(at, ({ body }) => JSON.parse(body).data.prospect.id === 5);
    const ends = consume(context, at.queue.splice(0));
    await untilDelivered(at, 9);
    answer.resolve();
    expect((await ends).map(({ status }) => status)).toEqual(TEN.map(() => "fulfilled"));
    expect(timesPosted(at.posts)).toEqual(TEN.map(() => 1));
    await expectReconciled(at, 10);
  });
});

test("a delivery in the throttled backlog is sent even if its limiter does not know of the backlog and all slots are in use", async () => {
  const at = await newPipeline(db);
  const { companyId, webhookId } = at;
  await publishIds(at, [1]);
  const [{ id } = expect.fail("no delivery")] = await deliveries(at);
  // A sender was killed after it had added the delivery to the throttled backlog, and before it noted the backlog in the limiter's row.
  const dueShard = keys.throttledBacklogShard(companyId, webhookId);
  await db.direct.write({ update: keys.delivery(companyId, webhookId, id), change: { set: { dueShard } } });
  const slots = Array.from({ length: slotLimit(at.context.senders, false) }, (_, i) => [
    `dlv_other${i}`,
    `${new Date(at.clock + LEASE_MS).toISOString()} ${i}`,
  ]);
  await putLimiter(db, at, { used: slots.length, fails: 0, slow: false, ...Object.fromEntries(slots) });
  expect(await consumeSome(at, at.queue.splice(0))).toBe(0);
  await settleFor(at, 2, drainBatches);
  expect(timesPosted(at.posts)).toEqual([1]);
  await expectReconciled(at, 1);
});

test("an unreadable row fails its own message only", async () => {
  const at = await newPipeline(db);
  await beQuick(at);
  await publishIds(at, TEN);
  const bad = present((await deliveries(at))[0]);
  const update = keys.delivery(at.companyId, at.webhookId, bad.id);
  await db.direct.write({ update, change: { set: { body: Buffer.of(9, 9) } } });
  const batch = at.queue.splice(0);
  const ends = await consume(at.context, batch);
  const failed = batch.filter((_, i) => ends[i]?.status === "rejected");
  expect(failed.map(({ message }) => "deliveryId" in message && message.deliveryId)).toEqual([bad.id]);
  expect(timesPosted(at.posts)).toEqual(TEN.slice(1).map(() => 1));
});

const StreamRecord = z.custom<DynamoDBRecord>((value) => typeof value === "object");
const record = (SequenceNumber: string, row: object): DynamoDBRecord =>
  z.parse(StreamRecord, { dynamodb: { SequenceNumber, NewImage: marshall(row) } });
const created = ({ companyId }: Pipeline, id: number) => record(String(id), createdItem(companyId, id));

test("a batch stops before the first record that fails for a while, and its repetition publishes each record once", async () => {
  const at = await newPipeline(db);
  const Records = TEN.map((id) => created(at, id));
  const { queue } = at.context;
  let sends = 0;
  // The first call of `send` has the messages of all records. It fails, so each of the next calls has the message of one record.
  const send: typeof queue.send = (entries) =>
    [1, 4].includes(++sends) ? Promise.reject(new BucketUnavailable("the queue fails")) : queue.send(entries);
  const context = { ...at.context, queue: { ...queue, send } };
  const publish = () => publishStream(() => context)({ Records });
  expect(await publish()).toEqual({ batchItemFailures: [{ itemIdentifier: "3" }] });
  expect(await publish()).toEqual({ batchItemFailures: [] });
  await settleFor(at, 1);
  expect(timesPosted(at.posts)).toEqual(TEN.map(() => 1));
  await expectReconciled(at, TEN.length);
});

test("if the registrations cannot be read at first, the second attempt publishes the batch, and no record becomes a poison record", async () => {
  const at = await newPipeline(db);
  let isFirst = true;
  const table = calledBy((work) => {
    if (!isFirst) return work();
    isFirst = false;
    return Promise.reject(new Error("broken"));
  }, at.context.table);
  const event = { Records: [created(at, 5)] };
  expect(await publishStream(() => ({ ...at.context, table }))(event)).toEqual({ batchItemFailures: [] });
  expect([isFirst, (await deliveries(at)).length]).toEqual([false, 1]);
});

test("an unreadable stream record, or one of a later release, becomes a poison record, and the other records of its batch are published", async () => {
  const at = await newPipeline(db);
  const saved: unknown[] = [];
  const context = { ...at.context, savePoisonRecord: async (record: unknown) => void saved.push(record) };
  const broken = record("2", { type: "prospect", companyId: at.companyId });
  const newer = record("3", { ...createdItem(at.companyId, 3), shape: 99 });
  const event = { Records: [created(at, 1), broken, newer, created(at, 2)] };
  expect(await publishStream(() => context)(event)).toEqual({ batchItemFailures: [] });
  expect(saved).toEqual([broken, newer]);
  await drainBatches(at);
  expect(timesPosted(at.posts)).toEqual([1, 1]);
});

test("ten events of one webhook cost less than six write units each", async () => {
  const at = await newPipeline(db);
  await beQuick(at);
  const { usage } = await metered(async () => {
    await publishIds(at, TEN);
    await drainBatches(at);
  });
  expect(timesPosted(at.posts)).toEqual(TEN.map(() => 1));
  // The batch costs one unit for the expected deliveries and two for the limiter's row. Each delivery costs two units when it is created,
  // and three when its result is recorded.
  expect(usage.writeUnits).toBe(1 + 2 + 10 * (2 + 3));
});

test("an open circuit breaker refuses ten deliveries in four calls of the table; all arrive later without a lost attempt", async () => {
  const at = await newPipeline(db);
  const { companyId, webhookId } = at;
  const openUntil = new Date(at.clock + 10_000).toISOString();
  const open = { used: 0, fails: 5, slow: false, openUntil };
  await putLimiter(db, at, { ...open, ...backlogMark(companyId, webhookId, at.clock) });
  await publishIds(at, TEN);
  at.queue.push({ message: drainMessage(at, "throttled"), at: at.clock + 10_000, isRepeat: false });
  const before = at.calls.length;
  expect(await consumeSome(at, at.queue.splice(0, 10))).toBe(0);
  expect(at.calls.slice(before)).toEqual(["batchGet", "batchGet", "transact", "get"]);
  expect(at.queue).toHaveLength(1);
  await drainBatches(at);
  expect(timesPosted(at.posts)).toEqual(TEN.map(() => 1));
  await expectReconciled(at, 10);
});
