/** From a committed change to the receiver, with the functions killed at every call they make: lost 0, twice only where a fault forces it. */
import { beforeAll, describe, expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import type { Post } from "#shared/outbound/post.ts";
import { sweep } from "#shared/webhooks/reconcile/sweep.ts";
import { deleteWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { Killed } from "../harness/killable.ts";
import { killPointsOf } from "../harness/kills.ts";
import {
  consume,
  deliveries,
  drain,
  newPipeline,
  type Pipeline,
  publish,
  publishUntilDone,
  START,
} from "./delivery-pipeline.ts";
import { expectReconciled } from "./reconciled.ts";

const db = faultyDynamoDb();
beforeAll(async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
});

const scene = (event?: string, delayMinutes?: number): Promise<Pipeline> => newPipeline(db, event, delayMinutes);

/** Every post is the same delivery in the same bytes. */
function expectSame(posts: readonly Post[]): void {
  expect(new Set(posts.map(({ body }) => body)).size).toBe(1);
  expect(new Set(posts.map(({ headers }) => headers["X-Service-Delivery"])).size).toBe(1);
}

/** How many calls an undisturbed run makes, so that a kill can be put at each. */
async function callsOf(prepare: (at: Pipeline) => void = () => undefined): Promise<string[]> {
  const at = await scene();
  prepare(at);
  await publish(at);
  await drain(at);
  return at.calls;
}

test("undisturbed: one delivery, one post, nothing left", async () => {
  const at = await scene();
  await publish(at);
  await drain(at);
  expect(at.posts).toHaveLength(1);
  const [delivery, ...more] = await deliveries(at);
  expect(more).toEqual([]);
  expect(delivery).toMatchObject({ state: "delivered", attempt: 1 });
  expect(delivery?.dueShard).toBeUndefined();
  expect(await expectReconciled(at)).toMatchObject({ matched: 1, delivered: 1, attempts: 1 });
});

describe("killed at each call, before and after it takes effect", () => {
  test.each(["before", "after"] as const)(
    "%s: the delivery arrives, again only if its post was cut off",
    { tags: "sized" },
    async (when) => {
      const calls = await callsOf();
      expect(calls.filter((name) => name === "post")).toHaveLength(1);
      for (const number of killPointsOf(calls.length, when === "before" ? 0 : 2)) {
        const at = await scene();
        at.kill = { at: number, when };
        await publishUntilDone(at);
        await drain(at);
        const place = `${when} ${calls[number - 1]} (${number})`;
        const [delivery, ...more] = await deliveries(at);
        expect(more, place).toEqual([]);
        expect(delivery?.state, place).toBe("delivered");
        expect(await expectReconciled(at, place), place).toMatchObject({ matched: 1, delivered: 1, attempts: 1 });
        expectSame(at.posts);
        // What comes between the post and its settling cannot be told from a post that never was.
        const cutOff = number > calls.indexOf("post") || (number === calls.indexOf("post") + 1 && when === "after");
        expect(at.posts.length, place).toBeLessThanOrEqual(cutOff ? 2 : 1);
        expect(at.posts.length, place).toBeGreaterThanOrEqual(1);
      }
    },
  );

  test.each(["before", "after"] as const)(
    "%s: with a receiver that fails twice, three attempts are made and no more",
    { tags: "sized" },
    async (when) => {
      const failTwice = (at: Pipeline): void => {
        at.answers = (post) => ({ status: Number(post.headers["X-Service-Attempt"]) < 3 ? 500 : 204 });
      };
      const calls = await callsOf(failTwice);
      for (const number of killPointsOf(calls.length, when === "before" ? 1 : 3)) {
        const at = await scene();
        failTwice(at);
        at.kill = { at: number, when };
        await publishUntilDone(at);
        await drain(at);
        const [delivery] = await deliveries(at);
        expect(delivery, `${when} ${number} ${calls[number - 1]}`).toMatchObject({ state: "delivered", attempt: 3 });
        expectSame(at.posts);
        expect(await expectReconciled(at)).toMatchObject({ matched: 1, delivered: 1, attempts: 3 });
        const attempts = new Set(at.posts.map(({ headers }) => headers["X-Service-Attempt"]));
        expect([...attempts]).toEqual(["1", "2", "3"]);
        expect(at.posts.length).toBeLessThanOrEqual(4);
      }
    },
  );
});

describe("repeats and reordering", () => {
  test("a record published three times, its messages handed out four times: one post", async () => {
    const at = await scene();
    for (let i = 0; i < 3; i++) await publish(at);
    at.queue.push(...at.queue.map((entry) => ({ ...entry })));
    await drain(at);
    await publish(at);
    await drain(at);
    expect(at.posts).toHaveLength(1);
    expect(await deliveries(at)).toHaveLength(1);
    expect(await expectReconciled(at)).toMatchObject({ matched: 1, delivered: 1 });
  });

  test("two senders with the same message at the same time: one post", async () => {
    const at = await scene();
    await publish(at);
    const message = at.queue[0]?.message;
    if (message === undefined) throw new Error("no message");
    await Promise.all(Array.from({ length: 5 }, () => consume(at, message, false)));
    expect(at.posts).toHaveLength(1);
  });

  test("a sender that has read the delivery before another has sent it sends nothing", async () => {
    const at = await scene();
    await publish(at);
    const message = at.queue[0]?.message;
    if (message === undefined) throw new Error("no message");
    const { table } = at.context;
    let reads = 0;
    const batchGet: typeof table.batchGet = async (keys) => {
      const items = await table.batchGet(keys);
      // Between what this one has read and its place at the gate, the other does all of it.
      if (++reads === 2) await consume(at, message, false);
      return items;
    };
    await consume({ ...at, context: { ...at.context, table: { ...table, batchGet } } }, message, false);
    expect(reads).toBe(3);
    expect(at.posts).toHaveLength(1);
    expect(await deliveries(at)).toMatchObject([{ state: "delivered", attempt: 1 }]);
  });

  test("a message of an attempt that is over does nothing", async () => {
    const at = await scene();
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
  test("a delay longer than the queue's is made of hops; never early", async () => {
    const at = await scene("prospect.created", 100);
    await publish(at);
    await drain(at);
    expect(at.posts).toHaveLength(1);
    expect(at.clock).toBeGreaterThanOrEqual(START + 100 * 60_000);
    expect(at.clock).toBeLessThan(START + 100 * 60_000 + 2_000);
  });

  test("a receiver that never recovers gets ten attempts over three days, then the delivery is exhausted", async () => {
    const at = await scene();
    at.answers = () => ({ status: 500 });
    await publish(at);
    // Hops of a quarter of an hour: every due time is reached by many messages.
    for (let i = 0; i < 5 && at.queue.length > 0; i++) await drain(at).catch(() => undefined);
    expect((await deliveries(at))[0]).toMatchObject({ state: "exhausted", attempt: 10 });
    expect(at.posts).toHaveLength(10);
    expect(await expectReconciled(at)).toMatchObject({ matched: 1, exhausted: 1, attempts: 10 });
    const hours = (at.clock - START) / 3_600_000;
    expect(hours).toBeGreaterThan(75.6 * 0.8);
    expect(hours).toBeLessThan(75.6 * 1.2 + 1);
  });

  test("the sweeper finds what is due and has no message, and leaves alone what has", async () => {
    const at = await scene();
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

  test("after the queue was lost everything that waits is queued again, whenever it is due", async () => {
    const at = await scene("prospect.created", 60);
    await publish(at);
    at.queue.length = 0;
    expect(await sweep(at.context, { assume: "messages-lost" })).toBe(1);
    await drain(at);
    expect(at.posts).toHaveLength(1);
    expect(at.clock).toBeGreaterThanOrEqual(START + 3_600_000);
  });
});

test("a sender that died with its message: the next one waits for the lease and then goes on", async () => {
  const at = await scene();
  await publish(at);
  at.kill = { at: at.calls.length + 5, when: "before" };
  const message = at.queue.shift()?.message;
  if (message === undefined) throw new Error("no message");
  await expect(consume(at, message, false)).rejects.toBeInstanceOf(Killed);
  expect(at.calls.at(-1)).toBe("post");
  at.clock += 1_000;
  expect(await sweep(at.context, { assume: "messages-lost" })).toBe(1);
  await drain(at);
  expect(at.posts).toHaveLength(1);
  expect((await deliveries(at))[0]?.state).toBe("delivered");
  await expectReconciled(at);
});

describe("what is gone", () => {
  test("a webhook deleted before the attempt cancels the delivery", async () => {
    const at = await scene();
    await publish(at);
    await deleteWebhook(contextOn(db.direct), at.companyId, at.webhookId);
    await drain(at);
    expect(at.posts).toHaveLength(0);
    expect((await deliveries(at))[0]?.state).toBe("cancelled");
    expect(await expectReconciled(at)).toMatchObject({ matched: 1, cancelled: 1, attempts: 0 });
  });

  test("an event that nobody is registered for makes nothing", async () => {
    const at = await scene("prospect.deleted");
    await publish(at);
    expect(at.queue).toEqual([]);
    expect(await deliveries(at)).toEqual([]);
    expect(await expectReconciled(at)).toMatchObject({ matched: 0 });
  });
});
