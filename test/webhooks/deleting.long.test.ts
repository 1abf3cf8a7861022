/** Tests that deleting a webhook or a registration cancels each waiting delivery once, and that the delivery log shows this immediately. */
import { describe, expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import { ApiError } from "#shared/errors.ts";
import { listDeliveries, readDelivery } from "#shared/webhooks/deliver/log.ts";
import { BREAKER_FAILURES } from "#shared/webhooks/limiter/limiter.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { untilDone } from "../harness/killable.ts";
import { present } from "../harness/shapes.ts";
import { sized } from "../harness/tier.ts";
import { createRegistration, deleteRegistration, deleteWebhook } from "../harness/verbs.ts";
import { automatic, START } from "./fixtures.ts";
import { consume, drain, killedAtEach, newPipeline, type Pipeline, publishIds, settleFor } from "./pipeline.ts";
import { deliveries, expectReconciled, putLimiter } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const MINUTE = 60_000;
/** Number of deliveries of each webhook. */
const COUNT = 2;
const publish = (at: Pipeline) => publishIds(at, [1, 2]);

/** Each function creates deliveries that wait. Its name says what they wait for. */
const waits = {
  "their first attempt": async () => {
    const at = await newPipeline(db);
    await publish(at);
    return at;
  },
  "their next attempt": async () => {
    const at = await newPipeline(db);
    at.answers = () => ({ status: 500 });
    await publish(at);
    for (const { message } of at.queue.splice(0, COUNT)) await consume(at, message, false);
    expect(at.posts).toHaveLength(COUNT);
    return at;
  },
  "the end of their delay": async () => {
    const at = await newPipeline(db, "prospect.created", 3 * 60);
    await publish(at);
    return at;
  },
  "the breaker": async () => {
    const at = await newPipeline(db);
    await putLimiter(db, at, { used: 0, fails: BREAKER_FAILURES - 1, slow: true });
    at.answers = () => ({ status: 500 });
    await publish(at);
    for (const { message } of at.queue.splice(0, COUNT)) await consume(at, message, false);
    expect(await expectReconciled(at)).toMatchObject({ throttled: COUNT - 1 });
    return at;
  },
  "the end of a pause": async () => {
    const at = await newPipeline(db);
    await at.pause();
    await publish(at);
    for (const { message } of at.queue.splice(0, COUNT)) await consume(at, message, false);
    expect(await expectReconciled(at)).toMatchObject({ paused: COUNT });
    return at;
  },
} satisfies Record<string, () => Promise<Pipeline>>;
const kinds = Object.entries(waits);

async function run(at: Pipeline, what: "webhook" | "registration", isPaused: boolean): Promise<void> {
  const { companyId, webhookId, registrationId } = at;
  const context = contextOn(at.context.table, { now: () => at.clock });
  const remove = () =>
    what === "webhook"
      ? deleteWebhook(context, companyId, webhookId)
      : deleteRegistration(context, companyId, webhookId, registrationId);
  await untilDone(() =>
    remove().catch((error: unknown) => {
      // A killed request may have deleted the record before this repetition.
      if (!(error instanceof ApiError && error.code === "not_found")) throw error;
    }),
  );
  // A paused webhook cancels its backlog only when it is resumed. A deleted webhook cannot be resumed.
  if (isPaused) await at.resume().catch(() => undefined);
  await settleFor(at, sized({ short: 2, wide: 3 }));
}

async function expectCancelled(at: Pipeline, label: string): Promise<void> {
  const rows = await deliveries(at);
  expect(
    rows.map(({ state }) => state),
    label,
  ).toEqual(Array.from({ length: COUNT }, () => "cancelled"));
  expect(at.posts, label).toEqual([]);
  expect(await expectReconciled(at, label), label).toMatchObject({ matched: COUNT, cancelled: COUNT, waiting: 0 });
  // SQS may deliver a message twice. The second message must change nothing.
  for (const { id, companyId, webhookId, attempt } of rows) {
    await consume(at, { v: 1, companyId, webhookId, deliveryId: id, attempt }, true);
  }
  await settleFor(at, 1);
  expect(await deliveries(at), label).toEqual(rows);
}

describe.each(["webhook", "registration"] as const)("deleting a %s cancels deliveries that wait for", (what) => {
  test.each(kinds)(
    "%s, killed at each call before and after it takes effect",
    { tags: "sized" },
    async (kind, wait) => {
      const stage = async () => {
        const at = await wait();
        at.posts.length = 0;
        at.calls.length = 0;
        return at;
      };
      const work = (at: Pipeline) => run(at, what, kind === "the end of a pause");
      const calm = await killedAtEach({ stage, run: work }, async (at, place) => {
        at.kill = undefined;
        await expectCancelled(at, place);
      });
      await expectCancelled(calm, "undisturbed");
    },
  );
});

describe("a deleted registration", () => {
  const removed = (at: Pipeline) => deleteRegistration(at.api, at.companyId, at.webhookId, at.registrationId);
  const shown = async (at: Pipeline, status?: "waiting" | "cancelled") =>
    (await listDeliveries(at.api, at.companyId, at.webhookId, { limit: 100, status })).items;

  test.each(kinds)("has its deliveries shown as cancelled immediately if they wait for %s", async (_, wait) => {
    const at = await wait();
    expect(await shown(at, "cancelled")).toEqual([]);
    expect(await shown(at, "waiting")).toHaveLength(COUNT);
    await removed(at);
    const cancelled = { status: "cancelled", nextAttemptAt: null, heldBy: null };
    expect(await shown(at)).toMatchObject(Array.from({ length: COUNT }, () => cancelled));
    expect(await shown(at, "cancelled")).toHaveLength(COUNT);
    expect(await shown(at, "waiting")).toEqual([]);
    for (const { id } of await shown(at)) {
      expect(await readDelivery(at.api, at.companyId, at.webhookId, id)).toMatchObject(cancelled);
    }
    expect(await expectReconciled(at)).toMatchObject({
      matched: COUNT,
      cancelled: COUNT,
      waiting: 0,
      paused: 0,
      throttled: 0,
    });
  });

  test("has a delivery with an attempt in progress shown as waiting, then with the attempt's result", async () => {
    const at = await newPipeline(db);
    await publish(at);
    const statuses = async () => (await shown(at)).map(({ status }) => status).toSorted();
    let during: unknown;
    const post: typeof at.context.post = async (sent) => {
      await removed(at);
      during = await statuses();
      return at.context.post(sent);
    };
    await consume({ context: { ...at.context, post } }, present(at.queue[0]).message, false);
    expect(during).toEqual(["cancelled", "waiting"]);
    expect(await statuses()).toEqual(["cancelled", "delivered"]);
  });

  test("has only its own deliveries cancelled, within a quarter of an hour and without the sweeper", async () => {
    const at = await newPipeline(db, "prospect.created", 24 * 60);
    const { companyId, webhookId } = at;
    const other = await createRegistration(at.api, companyId, webhookId, automatic("prospect.created", 60));
    await publish(at);
    // SQS delays a message by at most 15 minutes, so a delivery that is due later needs several messages. This loop processes the
    // first message of each delivery.
    at.clock += 15 * MINUTE;
    for (const { message } of at.queue.splice(0, 2 * COUNT)) await consume(at, message, false);
    at.clock += 1_000;
    await removed(at);
    const until = at.clock + 15 * MINUTE;
    for (const entry of at.queue.filter((queued) => queued.at <= until)) {
      at.queue.splice(at.queue.indexOf(entry), 1);
      at.clock = Math.max(at.clock, entry.at);
      await consume(at, entry.message, false);
    }
    const rows = await deliveries(at);
    for (const { registrationId, state } of rows) {
      expect(state).toBe(registrationId === other.id ? "waiting" : "cancelled");
    }
    expect(rows).toHaveLength(2 * COUNT);
    await drain(at);
    expect(at.posts).toHaveLength(COUNT);
    expect(at.clock).toBe(START + 60 * MINUTE);
    expect(await expectReconciled(at)).toMatchObject({ matched: 2 * COUNT, cancelled: COUNT, delivered: COUNT });
  });
});
