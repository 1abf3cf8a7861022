/** Tests that every event arrives although functions are killed at any of their calls. */
import { describe, expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import type { Post } from "#shared/outbound/post.ts";
import { sweep } from "#shared/webhooks/reconcile/sweep.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { present } from "../harness/shapes.ts";
import { START } from "./fixtures.ts";
import { consume, drain, killedAtEach, newPipeline, type Pipeline, publish, publishUntilDone } from "./pipeline.ts";
import { deliveries, expectReconciled } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const pipeline = (event?: string, delayMinutes?: number) => newPipeline(db, event, delayMinutes);

function expectSame(posts: readonly Post[]): void {
  expect(new Set(posts.map(({ body }) => body)).size).toBe(1);
  expect(new Set(posts.map(({ headers }) => headers["X-Service-Delivery"])).size).toBe(1);
}

async function send(at: Pipeline): Promise<void> {
  await publishUntilDone(at);
  await drain(at);
}

async function expectDelivered(at: Pipeline, attempts: number): Promise<void> {
  expect(at.posts).toHaveLength(attempts);
  const rows = await deliveries(at);
  expect(rows).toMatchObject([{ state: "delivered", attempt: attempts }]);
  expect(rows[0]?.dueShard).toBeUndefined();
  expect(await expectReconciled(at)).toMatchObject({ matched: 1, delivered: 1, attempts });
}

describe("a kill at each call", () => {
  test("loses no delivery, and repeats the post only if its result was not recorded before the kill", {
    tags: "sized",
  }, async () => {
    const calm = await killedAtEach({ stage: pipeline, run: send }, async (at, label, number, calls, isAfter) => {
      const [delivery, ...more] = await deliveries(at);
      expect(more, label).toEqual([]);
      expect(delivery?.state, label).toBe("delivered");
      expect(await expectReconciled(at, label), label).toMatchObject({ matched: 1, delivered: 1, attempts: 1 });
      expectSame(at.posts);
      // After a kill between the post and the record of its result, the service does not know whether the post arrived, and may repeat it.
      const cutOff = number > calls.indexOf("post") || (number === calls.indexOf("post") + 1 && isAfter);
      expect(at.posts.length, label).toBeLessThanOrEqual(cutOff ? 2 : 1);
      expect(at.posts.length, label).toBeGreaterThanOrEqual(1);
    });
    await expectDelivered(calm, 1);
  });

  test("leaves three attempts at a receiver that fails twice", { tags: "sized" }, async () => {
    const failingTwice = async (): Promise<Pipeline> => {
      const at = await pipeline();
      at.answers = (post) => ({ status: Number(post.headers["X-Service-Attempt"]) < 3 ? 500 : 204 });
      return at;
    };
    const calm = await killedAtEach({ stage: failingTwice, run: send, turns: [1, 3] }, async (at, label) => {
      const [delivery] = await deliveries(at);
      expect(delivery, label).toMatchObject({ state: "delivered", attempt: 3 });
      expectSame(at.posts);
      expect(await expectReconciled(at)).toMatchObject({ matched: 1, delivered: 1, attempts: 3 });
      const attempts = new Set(at.posts.map(({ headers }) => headers["X-Service-Attempt"]));
      expect([...attempts]).toEqual(["1", "2", "3"]);
      expect(at.posts.length).toBeLessThanOrEqual(4);
    });
    await expectDelivered(calm, 3);
  });
});

describe("repeats and reordering", () => {
  test("concurrent senders with the same message make one post", async () => {
    const at = await pipeline();
    await publish(at);
    const message = present(at.queue[0]).message;
    await Promise.all(Array.from({ length: 5 }, () => consume(at, message, false)));
    expect(at.posts).toHaveLength(1);
  });

  test.each([
    { status: 200, left: { state: "delivered", attempt: 1 } },
    { status: 500, left: { state: "waiting", attempt: 2 } },
  ])(
    "a sender sends nothing if another sender has sent the delivery since it was read, with the answer $status",
    async ({ status, left }) => {
      const at = await pipeline();
      at.answers = () => ({ status });
      await publish(at);
      const message = present(at.queue[0]).message;
      const { table } = at.context;
      let reads = 0;
      const batchGet: typeof table.batchGet = async (keys) => {
        const items = await table.batchGet(keys);
        // The first sender has read the delivery, but has no slot yet. A second sender does all the work.
        if (++reads === 2) await consume(at, message, false);
        return items;
      };
      await consume({ ...at, context: { ...at.context, table: { ...table, batchGet } } }, message, false);
      expect(reads).toBe(3);
      expect(at.posts).toHaveLength(1);
      expect(await deliveries(at)).toMatchObject([left]);
      // Later tests run the sweeper on the same table, so no delivery may wait in it.
      at.answers = () => ({});
      await drain(at);
    },
  );

  test("a message of a finished attempt does nothing", async () => {
    const at = await pipeline();
    at.answers = (_, number) => ({ status: number === 1 ? 500 : 200 });
    await publish(at);
    const first = at.queue[0]?.message;
    await drain(at);
    if (first === undefined) throw new Error("no message");
    await consume(at, first, true);
    if (!("attempt" in first)) throw new Error("not an attempt");
    await consume(at, { ...first, attempt: 9 }, true);
    await drain(at);
    expect(at.posts.map(({ headers }) => headers["X-Service-Attempt"])).toEqual(["1", "2"]);
  });
});

describe("time", () => {
  test("a receiver that never recovers gets ten attempts over three days, then the delivery is exhausted", async () => {
    const at = await pipeline();
    at.answers = () => ({ status: 500 });
    await publish(at);
    // SQS delays a message by at most 15 minutes, so a delivery that is due later needs several messages.
    for (let i = 0; i < 5 && at.queue.length > 0; i++) await drain(at).catch(() => undefined);
    expect((await deliveries(at))[0]).toMatchObject({ state: "exhausted", attempt: 10 });
    expect(at.posts).toHaveLength(10);
    expect(await expectReconciled(at)).toMatchObject({ matched: 1, exhausted: 1, attempts: 10 });
    const hours = (at.clock - START) / 3_600_000;
    expect(hours).toBeGreaterThan(75.6 * 0.8);
    expect(hours).toBeLessThan(75.6 * 1.2 + 1);
  });

  test.each([302, 400, 410, 429, 503])("the Retry-After of a %i answer sets the next attempt", async (status) => {
    const at = await pipeline();
    at.answers = (_, number) => (number === 1 ? { status, retryAfter: "120" } : { status: 204 });
    await publish(at);
    await drain(at);
    expect(await deliveries(at)).toMatchObject([{ attempt: 2, dueAt: iso(START + 120_000) }]);
    if (status === 410) {
      await at.resume();
      await drain(at);
    }
    expect(at.posts).toHaveLength(2);
    expect(at.clock).toBeGreaterThanOrEqual(START + 120_000);
    expect(await expectReconciled(at)).toMatchObject({ matched: 1, delivered: 1, attempts: 2 });
  });

  test("the sweeper queues a due delivery only if it has no message", async () => {
    const at = await pipeline();
    await publish(at);
    at.queue.length = 0;
    expect(await sweep(at.context, { assume: "messages-kept" })).toBe(0);
    at.clock += 60_000;
    expect(await sweep(at.context, { assume: "messages-kept" })).toBe(1);
    expect(await sweep(at.context, { assume: "messages-kept" })).toBe(0);
    await drain(at);
    expect(at.posts).toHaveLength(1);
    expect(await sweep(at.context, { assume: "messages-lost" })).toBe(0);
  });

  test("after the loss of the queue, all waiting deliveries are queued again, whenever they are due", async () => {
    const at = await pipeline("prospect.created", 60);
    await publish(at);
    at.queue.length = 0;
    expect(await sweep(at.context, { assume: "messages-lost" })).toBe(1);
    await drain(at);
    expect(at.posts).toHaveLength(1);
    expect(at.clock).toBeGreaterThanOrEqual(START + 3_600_000);
  });
});
