/** Tests that a paused webhook sends nothing and loses nothing, and that its backlog is sent oldest first after the resumption. */
import { describe, expect, test } from "vitest";
import * as keys from "#shared/db/keys.ts";
import { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { unlessKilled } from "../harness/killable.ts";
import { deleteWebhook, resumeWebhook } from "../harness/verbs.ts";
import { creation, START } from "./fixtures.ts";
import { drain, killedAtEach, newPipeline, type Pipeline, publishIn, publishUntilDone, settleFor } from "./pipeline.ts";
import { deliveries, expectReconciled, sentIds, statesOf } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const webhookRow = async ({ companyId, webhookId }: Pipeline) =>
  StoredWebhook.parse(await db.direct.get(keys.webhook(companyId, webhookId)));

async function change(at: Pipeline, first: number, count: number): Promise<void> {
  const changes = range(first, count).map((id) => {
    at.clock += 1_000;
    return creation(at.companyId, id, at.clock);
  });
  await publishIn(at.context, ...changes);
}

const range = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first + i);

const settle = (at: Pipeline): Promise<void> => settleFor(at, 2);

test("the events of a pause are kept, and sent in order of time after the resumption, ten a second", async () => {
  const at = await newPipeline(db);
  await change(at, 1, 2);
  await drain(at);
  await at.pause();
  await change(at, 10, 55);
  await settle(at);
  expect(sentIds(at)).toEqual([1, 2]);
  expect((await deliveries(at)).filter(({ state }) => state === "waiting")).toHaveLength(55);
  expect(await expectReconciled(at)).toMatchObject({ matched: 57, delivered: 2, waiting: 55, paused: 55 });

  const resumedAt = at.clock;
  expect((await at.resume()).status).toBe("active");
  await settle(at);
  expect(sentIds(at)).toEqual([1, 2, ...range(10, 55)]);
  const times = at.posts.slice(2).map(({ headers }) => Number(headers["webhook-timestamp"]) * 1_000 - resumedAt);
  for (const [i, time] of times.entries()) expect(time).toBeGreaterThanOrEqual(Math.floor(i / 10) * 1_000 - 1_000);
  expect(Math.max(...times)).toBeLessThan(15_000);
  expect((await deliveries(at)).every(({ state }) => state === "delivered")).toBe(true);
  expect(await webhookRow(at)).not.toHaveProperty("dueShard");
  expect(await expectReconciled(at)).toMatchObject({ matched: 57, delivered: 57, paused: 0 });
});

test("a pause during the drain keeps the rest; pausing and resuming twice changes nothing", async () => {
  const at = await newPipeline(db);
  await at.pause();
  expect((await at.pause()).status).toBe("paused");
  await change(at, 1, 55);
  await drain(at);
  await at.resume();
  await at.resume();
  // Only the message that starts the drain stays in the queue.
  const step = at.queue.findIndex(({ message }) => "drain" in message);
  const [first] = at.queue.splice(step, 1);
  at.queue.length = 0;
  if (first !== undefined) at.queue.push(first);
  await at.pause();
  await settle(at);
  expect(at.posts.length).toBe(0);
  await at.resume();
  await settle(at);
  expect(sentIds(at).toSorted((a, b) => a - b)).toEqual(range(1, 55));
  expect(await expectReconciled(at)).toMatchObject({ matched: 55, delivered: 55 });
});

test("a repeated resumption queues the next step again, because the first request may have been killed before", async () => {
  const at = await newPipeline(db);
  await at.pause();
  await at.resume();
  at.queue.length = 0;
  expect((await at.resume()).status).toBe("active");
  expect(at.queue.map(({ message }) => message)).toMatchObject([{ drain: "paused" }]);
});

test("a kill at each call leaves each event sent once", { tags: "sized" }, async () => {
  const run = async (at: Pipeline): Promise<void> => {
    await at.pause();
    await publishUntilDone(at);
    await drain(at);
    await at.resume().catch(unlessKilled);
    await settle(at);
  };
  const work = { stage: () => newPipeline(db), run, turns: [0, 1] } as const;
  const calm = await killedAtEach(work, async (at, place, number, calls) => {
    expect(await statesOf(at), place).toEqual(["delivered"]);
    const afterPost = number >= calls.indexOf("post") + 1;
    expect(at.posts.length, place).toBeGreaterThanOrEqual(1);
    expect(at.posts.length, place).toBeLessThanOrEqual(afterPost ? 2 : 1);
    expect(new Set(at.posts.map(({ body }) => body)).size, place).toBe(1);
    await expectReconciled(at, place);
  });
  expect(calm.posts).toHaveLength(1);
});

test("a delivery that joins the paused backlog after the drain is sent without another resumption", async () => {
  const at = await newPipeline(db);
  await at.pause();
  await publishUntilDone(at);
  const { table } = at.context;
  // The sender has read that the webhook is paused. Before its first write, the webhook is resumed, and its backlog is marked as sent.
  let isResumed = false;
  const context = {
    ...at.context,
    table: {
      ...table,
      write: async (entry: Parameters<typeof table.write>[0]) => {
        if (!isResumed) {
          isResumed = true;
          await at.resume();
          at.queue.length = 0;
          const { companyId, webhookId } = at;
          const change = { remove: ["dueShard", "dueAt"] };
          await db.direct.write({ update: keys.webhook(companyId, webhookId), change });
        }
        return table.write(entry);
      },
    },
  };
  await drain({ ...at, context });
  await drain(at);
  expect(at.posts).toHaveLength(1);
  await expectReconciled(at);
});

test("a webhook that is deleted during its resumption is not found", async () => {
  const at = await newPipeline(db);
  await at.pause();
  const { table, queue } = at.context;
  const context = { ...at.api, table };
  // The webhook is deleted after the request for its resumption has read the webhook's row.
  at.meanwhile = { at: at.calls.length + 2, work: () => deleteWebhook(at.api, at.companyId, at.webhookId) };
  const resumed = resumeWebhook(context, queue, at.companyId, at.webhookId);
  await expect(resumed).rejects.toMatchObject({ code: "not_found" });
});

describe("a receiver", () => {
  test("that answers 410 is paused, and the delivery is sent again after the resumption", async () => {
    const at = await newPipeline(db);
    at.answers = (_, number) => ({ status: number === 1 ? 410 : 200 });
    await publishUntilDone(at);
    await settle(at);
    expect((await webhookRow(at)).status).toBe("paused");
    expect(at.posts).toHaveLength(1);
    expect(await deliveries(at)).toMatchObject([{ state: "waiting", attempt: 2 }]);
    expect(await expectReconciled(at)).toMatchObject({ matched: 1, waiting: 1, paused: 1, attempts: 1 });
    await at.resume();
    await settle(at);
    expect(at.posts.map(({ headers }) => headers["X-Service-Attempt"])).toEqual(["1", "2"]);
    expect(await deliveries(at)).toMatchObject([{ state: "delivered", attempt: 2 }]);
  });

  test("that fails for five days is paused, and one success restarts the five days", async () => {
    const at = await newPipeline(db);
    const day = 86_400_000;
    at.answers = () => ({ status: at.clock > START + 3 * day && at.clock < START + 4 * day ? 200 : 500 });
    const daily = async (first: number, days: number): Promise<void> => {
      for (let i = 0; i < days; i++) {
        at.clock = Math.max(at.clock, START + (first + i) * day + 1);
        await change(at, 1 + first + i, 1);
        // Each delivery gets one attempt, because retries would advance the clock too far.
        const next = at.queue.shift();
        if (next !== undefined) await drain({ ...at, queue: [next] }).catch(() => undefined);
        at.queue.length = 0;
      }
    };
    await daily(0, 3);
    expect((await webhookRow(at)).failingSince).toBeDefined();
    await daily(3, 1);
    expect((await webhookRow(at)).failingSince).toBeUndefined();
    await daily(4, 5);
    expect((await webhookRow(at)).status).toBe("active");
    await daily(9, 1);
    expect((await webhookRow(at)).status).toBe("paused");
    expect((await at.resume()).status).toBe("active");
    expect((await webhookRow(at)).failingSince).toBeUndefined();
  });
});
