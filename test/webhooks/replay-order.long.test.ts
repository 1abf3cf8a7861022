/** Tests that a replay sends each failed delivery once, oldest first and at a bounded rate, also after kills. */
import { expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import * as keys from "#shared/db/keys.ts";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import type { ReplayRange } from "#shared/webhooks/deliver/replay.ts";
import type { StoredAttempt, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { untilDone } from "../harness/killable.ts";
import { deleteRegistration, startReplay } from "../harness/verbs.ts";
import { creation, START } from "./fixtures.ts";
import { drain, killedAtEach, newPipeline, type Pipeline, publishIn, settleFor } from "./pipeline.ts";
import { deliveries, expectReconciled, statesOf } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const HOUR = 3_600_000;
/** The time at which the tests start a replay. */
const LATER = START + HOUR;

const everything: ReplayRange = { from: iso(START - HOUR), to: undefined, deliveries: "undelivered" };
const replay = (at: Pipeline, range: Partial<ReplayRange> = {}) =>
  startReplay(at.api, at.context.queue, at.companyId, at.webhookId, { ...everything, ...range });

type Fate = "delivered" | "exhausted" | "failing";

/**
 * Makes a delivery for each of `fates`, one second apart, without a queue message. An exhausted delivery has had ten attempts, and each
 * other one has had one.
 */
async function sceneOf(fates: readonly Fate[]): Promise<Pipeline> {
  const at = await newPipeline(db);
  at.answers = (post) => ({ status: fates[prospectIn(post.body) - 1] === "delivered" ? 200 : 500 });
  for (const i of fates.keys()) {
    at.clock = START + i * 1_000;
    at.queue.length = 0;
    await publishIn(at.context, creation(at.companyId, i + 1, at.clock));
    const message = at.queue.shift();
    if (message !== undefined) await drain({ ...at, queue: [message] }, 0).catch(() => undefined);
  }
  for (const delivery of await deliveries(at)) {
    if (fates[prospectIn(delivery.body ?? "") - 1] !== "exhausted") continue;
    const key = keys.delivery(at.companyId, at.webhookId, delivery.id);
    const change = { set: { state: "exhausted", attempt: 10 }, remove: ["dueShard"] };
    await db.direct.write({ update: key, change });
    const attempts = Array.from({ length: 10 }, (_, i) => ({
      ...keys.attempt(at.companyId, at.webhookId, delivery.id, i + 1),
      ...failedAttempt(i + 1, delivery),
    }));
    await db.direct.batchPut(attempts);
  }
  // Without the limiter's row, which counts the failures, each delivery can be sent immediately.
  await db.direct.batchRemove([limiterKeys.limiter(at.companyId, at.webhookId)]);
  at.posts.length = 0;
  at.queue.length = 0;
  at.calls.length = 0;
  at.clock = LATER;
  at.answers = () => ({ status: 200 });
  return at;
}

const failedAttempt = (number: number, { createdAt, expiresAt }: StoredDelivery): StoredAttempt => {
  const answer = { latencyMs: 1, status: 500, error: null, answer: "" };
  return { type: "attempt", number, startedAt: createdAt, ...answer, expiresAt };
};

const prospectIn = (body: string): number => JSON.parse(body).data.prospect.id;
const sent = (at: Pipeline): number[] => at.posts.map(({ body }) => prospectIn(body));
const those = (fates: readonly Fate[], ...wanted: Fate[]): number[] =>
  fates.flatMap((fate, i) => (wanted.includes(fate) ? [i + 1] : []));
const mixed = (count: number): Fate[] =>
  Array.from({ length: count }, (_, i) => (["delivered", "exhausted", "failing"] as const)[i % 3] ?? "failing");

test("a replay sends failed deliveries once, with the same bytes, oldest first, ten a second", async () => {
  const fates = mixed(150);
  const at = await sceneOf(fates);
  const before = new Map((await deliveries(at)).map(({ id, body }) => [id, body]));
  expect(await replay(at)).toEqual({ count: 100 });
  await drain(at);
  expect(sent(at)).toEqual(those(fates, "exhausted", "failing"));
  for (const { headers, body } of at.posts) expect(before.get(headers["X-Service-Delivery"] ?? "")).toBe(body);
  const times = at.posts.map(({ headers }) => Number(headers["webhook-timestamp"]) * 1_000 - LATER);
  for (const [i, time] of times.entries()) expect(time).toBeGreaterThanOrEqual(Math.floor(i / 10) * 1_000);
  expect((await deliveries(at)).every(({ state }) => state === "delivered")).toBe(true);
  expect(await replay(at)).toEqual({ count: 0 });
  await drain(at);
  expect(at.posts).toHaveLength(100);
  expect(await expectReconciled(at)).toMatchObject({ matched: 150, delivered: 150 });
});

test("a repeated replay sends once, a different one meanwhile is a conflict, and `all` also sends what was delivered", async () => {
  const fates = mixed(9);
  const at = await sceneOf(fates);
  const asked = await Promise.all([replay(at), replay(at), replay(at)]);
  expect(asked).toEqual([{ count: 6 }, { count: 6 }, { count: 6 }]);
  await expect(replay(at, { deliveries: "all" })).rejects.toMatchObject({ code: "conflict" });
  await drain(at);
  expect(sent(at).toSorted((a, b) => a - b)).toEqual(those(fates, "exhausted", "failing"));
  expect(await replay(at, { deliveries: "all" })).toEqual({ count: 9 });
  expect(await replay(at, { deliveries: "all" })).toEqual({ count: 9 });
  await drain(at);
  expect(at.posts).toHaveLength(15);
  expect(await expectReconciled(at)).toMatchObject({ matched: 9, delivered: 9, waiting: 0 });
});

test("a replay selects exactly the deliveries between its two times, both included", async () => {
  const at = await sceneOf(Array.from({ length: 10 }, () => "exhausted" as const));
  const second = (n: number): string => iso(START + n * 1_000);
  await expect(replay(at, { from: second(8), to: second(2) })).rejects.toMatchObject({ code: "validation_failed" });
  expect(await replay(at, { from: second(20) })).toEqual({ count: 0 });
  expect(await replay(at, { from: second(3), to: second(6) })).toEqual({ count: 4 });
  await drain(at);
  expect(sent(at)).toEqual([4, 5, 6, 7]);
  expect(await expectReconciled(at)).toMatchObject({ matched: 10, delivered: 4, exhausted: 6 });
});

test("a replay skips deliveries that had no attempt, are in a paused backlog, or belong to a deleted registration", async () => {
  const at = await sceneOf(["exhausted", "failing"]);
  await publishIn(at.context, creation(at.companyId, 3, at.clock));
  await at.pause();
  expect(await replay(at)).toEqual({ count: 2 });
  await drain(at);
  expect(at.posts).toEqual([]);
  expect(await replay(at)).toEqual({ count: 0 });
  await at.resume();
  await drain(at);
  expect(sent(at).toSorted()).toEqual([1, 2, 3]);
  expect(await expectReconciled(at)).toMatchObject({ matched: 3, delivered: 3 });

  await deleteRegistration(at.api, at.companyId, at.webhookId, at.registrationId);
  expect(await replay(at, { deliveries: "all" })).toEqual({ count: 0 });
});

async function run(at: Pipeline): Promise<void> {
  const context = { ...at.api, table: at.context.table };
  const range = { ...everything, deliveries: "all" } as const;
  await untilDone(() => startReplay(context, at.context.queue, at.companyId, at.webhookId, range));
  await settleFor(at, 3);
}

test("a kill at each call leaves each delivery sent, twice only if its result was not recorded before the kill", {
  tags: "sized",
}, async () => {
  const calm = await killedAtEach({ stage: () => sceneOf(["delivered", "failing"]), run }, async (at, place) => {
    expect(new Set(sent(at)), place).toEqual(new Set([1, 2]));
    expect(at.posts.length, place).toBeLessThanOrEqual(3);
    expect(new Set(at.posts.map(({ body }) => body)).size, place).toBe(2);
    expect(new Set(await statesOf(at)), place).toEqual(new Set(["delivered"]));
    await expectReconciled(at, place);
  });
  expect(sent(calm)).toEqual([1, 2]);
});
