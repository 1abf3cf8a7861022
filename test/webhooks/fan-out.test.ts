/** Tests that each match of a fan-out (an event with many matches) gets one delivery, with the same bytes as without a fan-out. */
import { deflateRawSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { fanOutKeys } from "#shared/db/webhook-keys.ts";
import * as limits from "#shared/limits.ts";
import { readDelivery } from "#shared/webhooks/deliver/log.ts";
import { packedBody } from "#shared/webhooks/delivery.ts";
import { StoredEventData } from "#shared/webhooks/event-data.ts";
import { MATCHES_PER_MESSAGE } from "#shared/webhooks/events/fan-out.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { killPointsOf } from "../harness/kills.ts";
import { present } from "../harness/shapes.ts";
import { createRegistration, deleteWebhook } from "../harness/verbs.ts";
import {
  allDeliveries,
  expandAll,
  type FanOutPipeline,
  newFanOutPipeline,
  type Subscribers,
  territoryChange,
} from "./fan-out-pipeline.ts";
import { automatic } from "./fixtures.ts";
import { consume, drain, publishIn, sweepOwn } from "./pipeline.ts";
import { expectReconciled, reconcileNow } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const EVENT_ID = "4711-2-territory.updated";

const addRegistration = ({ companyId, webhookIds: [webhookId = 0] }: FanOutPipeline, event = "territory.updated") =>
  createRegistration(contextOn(db.direct), companyId, webhookId, automatic(event));

async function published(subscribers: Subscribers): Promise<FanOutPipeline> {
  const at = await newFanOutPipeline(db, subscribers);
  await publishIn(at.context, territoryChange(at.companyId, 2));
  return at;
}

const Body = z.object({ registrationId: z.int(), data: z.unknown() });

test("each match makes one delivery, with the same bytes as without a fan-out in every attempt and in the log", async () => {
  const at = await published({ webhooks: 3, each: 40 });
  // The receiver refuses the first attempt of a fifth of the deliveries, so that these have a second attempt.
  at.answers = ({ headers }) => ({
    status: headers["X-Service-Attempt"] === "1" && /[07]$/.test(headers["X-Service-Delivery"] ?? "") ? 503 : 200,
  });
  expect(await allDeliveries(at)).toEqual([]);
  await drain(at, 5_000);
  const made = await allDeliveries(at);
  expect(made).toHaveLength(120);
  expect(made.every(({ body, sharedData }) => body === undefined && sharedData === true)).toBe(true);
  const bodies = new Map<string, Set<string>>();
  for (const { headers, body } of at.posts) {
    const id = headers["X-Service-Delivery"] ?? "";
    bodies.set(id, (bodies.get(id) ?? new Set()).add(body));
  }
  expect(bodies.size).toBe(120);
  const registered = new Set<number>();
  for (const { id, event, createdAt, companyId, webhookId, registrationId } of made) {
    const [body = "", ...others] = bodies.get(id) ?? [];
    expect(others).toEqual([]);
    const { data, registrationId: inBody } = Body.parse(JSON.parse(body));
    registered.add(inBody);
    const head = { id, event, createdAt, companyId, webhookId, registrationId };
    const rest = { trigger: "automatic", triggeredBy: null, eventCount: 1, data };
    expect(body).toBe(JSON.stringify({ ...head, ...rest }));
  }
  expect(registered.size).toBe(120);
  const one = present(made[0]);
  const shown = await readDelivery(contextOn(db.direct), at.companyId, one.webhookId, one.id);
  expect([shown.body]).toEqual([...(bodies.get(one.id) ?? [])]);
  expect(at.posts.length).toBeGreaterThan(120);
  expect(await expectReconciled(at)).toMatchObject({ matched: 120, delivered: 120, attempts: at.posts.length });
});

describe("the publisher", () => {
  test("stores large data once even for few matches", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 1, each: 10 });
    const change = territoryChange(at.companyId, 2, limits.polygonPointsMax);
    const { usage } = await metered(() => publishIn(at.context, change));
    expect(usage.writeUnits).toBeLessThan(120);
    await drain(at);
    expect(at.posts).toHaveLength(10);
    expect(await expectReconciled(at)).toMatchObject({ matched: 10, delivered: 10 });
  });

  test("makes 200 deliveries of a company for one batch itself, and leaves the next event to the deliverer", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 2, each: limits.directMatchesTogether / 4 });
    await addRegistration(at, "territory.created");
    const changes = [2, 3].map((version) => territoryChange(at.companyId, version));
    const context = { ...at.context, table: { ...at.context.table, insert: async () => [] } };
    await publishIn(context, ...changes, { before: undefined, after: territoryChange(at.companyId, 1).after });
    const direct = at.queue.filter(({ message }) => "deliveryId" in message);
    expect([direct.length, at.queue.length]).toEqual([limits.directMatchesTogether, limits.directMatchesTogether + 1]);
  });

  test("compresses bodies at the fastest level", () => {
    const text = JSON.stringify(territoryChange(1, 2, 1_000).after);
    const slowest = deflateRawSync(text, { level: 9 }).length;
    expect(packedBody(text).length).toBeGreaterThan(slowest * 1.02);
  });
});

test("event data expires later than each delivery that refers to it", async () => {
  const at = await published({ webhooks: 3, each: 50, delayMinutes: limits.delayMinutesMax });
  await expandAll(at);
  const made = await allDeliveries(at);
  const data = StoredEventData.parse(await db.direct.get(fanOutKeys.eventData(at.companyId, EVENT_ID)));
  for (const { expiresAt } of made) expect(data.expiresAt).toBeGreaterThan(expiresAt);
});

describe("repeats and concurrent changes", () => {
  test("a repeated record adds no delivery, whether its deliveries are made already or not", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 3, each: 50 });
    const change = territoryChange(at.companyId, 2);
    await publishIn(at.context, change);
    await publishIn(at.context, change);
    await expandAll(at);
    await publishIn(at.context, change);
    await expandAll(at);
    expect(await allDeliveries(at)).toHaveLength(150);
    expect(await expectReconciled(at)).toMatchObject({ matched: 150, waiting: 150, expanding: 0 });
  });

  test("a registration created after the publication gets no delivery when the record is repeated", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 3, each: 50 });
    const change = territoryChange(at.companyId, 2);
    await publishIn(at.context, change);
    await addRegistration(at);
    await publishIn(at.context, change);
    await expandAll(at);
    expect(await allDeliveries(at)).toHaveLength(150);
  });

  test("a webhook deleted during the fan-out gets no request", async () => {
    const at = await published({ webhooks: 3, each: 50 });
    const [gone = 0] = at.webhookIds;
    await deleteWebhook(contextOn(db.direct), at.companyId, gone);
    await drain(at, 5_000);
    expect(at.posts).toHaveLength(100);
    expect(at.posts.some(({ url }) => url.endsWith(`/${gone}`))).toBe(false);
    expect(await expectReconciled(at)).toMatchObject({ matched: 150, delivered: 100, cancelled: 50 });
  });

  test("a record that is repeated as a fan-out makes no delivery that a killed publisher has already made", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 2, each: limits.directMatches / 2 });
    const change = territoryChange(at.companyId, 2);
    await publishIn(at.context, change);
    const before = at.queue.splice(0).length;
    // With one more registration, the repeated event has more than 100 matches, and becomes a fan-out.
    await addRegistration(at);
    await publishIn(at.context, change);
    await expandAll(at);
    expect(before).toBe(100);
    expect(await allDeliveries(at)).toHaveLength(101);
    expect(await expectReconciled(at)).toMatchObject({ matched: 101, waiting: 101 });
  });
});

describe("a message of a fan-out", () => {
  test("makes no deliveries if another message holds the lease", async () => {
    const at = await published({ webhooks: 3, each: 50 });
    const first = present(at.queue.splice(0)[0]);
    await Promise.all(Array.from({ length: 5 }, () => consume(at, first.message, false)));
    const queued = at.queue.flatMap(({ message }) => ("deliveryId" in message ? [message.deliveryId] : []));
    expect(queued).toHaveLength(150);
    expect(new Set(queued).size).toBe(150);
  });

  test("that loses its lease makes no further delivery, and leaves the lease to its new owner", async () => {
    const at = await published({ webhooks: 3, each: 50 });
    const first = present(at.queue.splice(0)[0]);
    const { table } = at.context;
    const other = iso(at.clock + 60_000);
    const write: typeof table.write = async (entry) => {
      const isRenewal = "update" in entry && entry.change.set?.movedAt !== undefined;
      if (isRenewal) await table.write({ update: entry.update, change: { set: { until: other } } });
      return table.write(entry);
    };
    await consume({ context: { ...at.context, table: { ...table, write } } }, first.message, false);
    expect(await allDeliveries(at)).toHaveLength(100);
    expect(at.queue.filter(({ message }) => !("deliveryId" in message))).toEqual([]);
    const lane = { companyId: at.companyId, isBulk: undefined };
    expect(await db.direct.get(fanOutKeys.progress(lane))).toMatchObject({ until: other });
  });

  test("ends although an earlier owner of the lease has already removed the fan-out", async () => {
    const at = await published({ webhooks: 3, each: 50 });
    const { table } = at.context;
    let removed = 0;
    const transact: typeof table.transact = async (writes) => {
      const isEnd = writes.some((write) => "remove" in write && write.remove.sk.startsWith("E#"));
      if (isEnd && removed++ === 0) await table.transact(writes);
      return table.transact(writes);
    };
    const queued = await expandAll({ ...at, context: { ...at.context, table: { ...table, transact } } });
    expect([removed, queued.length, (await allDeliveries(at)).length]).toEqual([1, 150, 150]);
    expect(await expectReconciled(at)).toMatchObject({ matched: 150, waiting: 150 });
  });

  test("makes deliveries for all webhooks in turn, so that consecutive deliveries are for different webhooks", async () => {
    const at = await published({ webhooks: 10, each: 15 });
    const first = present(at.queue.splice(0)[0]);
    await consume(at, first.message, false);
    const webhookIds = at.queue.flatMap(({ message }) => ("deliveryId" in message ? [message.webhookId] : []));
    for (let from = 0; from < webhookIds.length; from += 10) {
      expect(new Set(webhookIds.slice(from, from + 10)).size).toBe(10);
    }
  });

  test("makes a bounded number of deliveries of small events, and the next message follows a second later", async () => {
    const at = await published({ webhooks: 12, each: 50 });
    const first = present(at.queue.splice(0)[0]);
    await consume(at, first.message, false);
    expect(at.queue.filter(({ message }) => "deliveryId" in message)).toHaveLength(MATCHES_PER_MESSAGE);
    expect(at.queue.filter(({ message }) => "fanOut" in message)).toMatchObject([{ at: at.clock + 1_000 }]);
    // SQS may deliver a message twice. The second message must change nothing.
    await consume(at, first.message, true);
    expect(await expectReconciled(at)).toMatchObject({ matched: MATCHES_PER_MESSAGE, expanding: 100 });
  });

  test("loses no event that arrives while the previous event finishes", { tags: "sized" }, async () => {
    const at = await published({ webhooks: 3, each: 35 });
    const first = present(at.queue.splice(0)[0]);
    const calls = at.calls.length;
    await consume(at, first.message, false);
    const steps = at.calls.length - calls;
    for (const step of killPointsOf(steps, 0)) {
      const again = await published({ webhooks: 3, each: 35 });
      const work = async (): Promise<void> => {
        const plain = { ...again.context, table: db.direct };
        await publishIn(plain, territoryChange(again.companyId, 3));
        // While the function of the previous message holds the lease of the company, the message of the new event has no effect.
        const own = again.queue.splice(
          again.queue.findLastIndex(({ message }) => "fanOut" in message),
          1,
        );
        for (const { message } of own) await consume({ context: plain }, message, false);
      };
      again.meanwhile = { at: again.calls.length + step, work };
      await expandAll(again);
      expect(await expectReconciled(again, String(step))).toMatchObject({ matched: 210, waiting: 210, expanding: 0 });
    }
  });
});

test("the sweeper sends one message for all fan-outs of a company whose messages are lost", async () => {
  const at = await newFanOutPipeline(db, { webhooks: 3, each: 50 });
  for (const version of [2, 3, 4]) await publishIn(at.context, territoryChange(at.companyId, version));
  at.queue.length = 0;
  at.clock += 60_000;
  await sweepOwn(at);
  expect(at.queue.map(({ message }) => message)).toEqual([{ v: 1, fanOut: true, companyId: at.companyId }]);
  expect(await expandAll(at)).toHaveLength(450);
  expect(await expectReconciled(at)).toMatchObject({ matched: 450, waiting: 450, expanding: 0 });
});

test("reconciliation reports a fan-out that does not move, lost data and lost deliveries", async () => {
  const stuck = await published({ webhooks: 3, each: 35 });
  stuck.clock += 16 * 60_000;
  expect((await reconcileNow(stuck)).faults).toEqual([
    `event ${EVENT_ID}: its fan-out has not moved for a quarter of an hour`,
  ]);

  const empty = await published({ webhooks: 3, each: 35 });
  await expandAll(empty);
  await db.direct.batchRemove([fanOutKeys.eventData(empty.companyId, EVENT_ID)]);
  const { faults } = await reconcileNow(empty);
  expect(faults).toHaveLength(105);
  expect(faults[0]).toContain("the data of its event is gone");
  const one = present((await allDeliveries(empty))[0]);
  await db.direct.batchRemove([keys.delivery(empty.companyId, one.webhookId, one.id)]);
  expect((await reconcileNow(empty)).faults).toContain(`${one.id}: is expected and has no row`);
});
