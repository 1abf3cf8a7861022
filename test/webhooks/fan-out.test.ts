/** Tests that each match of a fan-out (an event with many matches) gets one delivery, also after repeats and deletions. */
import { deflateRawSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import { contextOn } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { fanOutKeys } from "#shared/db/webhook-keys.ts";
import * as limits from "#shared/limits.ts";
import { packedBody } from "#shared/webhooks/delivery.ts";
import { StoredEventData } from "#shared/webhooks/event-data.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { present } from "../harness/shapes.ts";
import { createRegistration, deleteWebhook } from "../harness/verbs.ts";
import { automatic, consume, drain, expectReconciled, publishIn, sweepOwn } from "./delivery-pipeline.ts";
import {
  allDeliveries,
  expandAll,
  type FanOutPipeline,
  newFanOutPipeline,
  territoryChange,
} from "./fan-out-pipeline.ts";

const db = faultyDynamoDb();

const addRegistration = ({ companyId, webhookIds: [webhookId = 0] }: FanOutPipeline, event = "territory.updated") =>
  createRegistration(contextOn(db.direct), companyId, webhookId, automatic(event));

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
  const at = await newFanOutPipeline(db, { webhooks: 3, each: 50, delayMinutes: limits.delayMinutesMax });
  await publishIn(at.context, territoryChange(at.companyId, 2));
  await expandAll(at);
  const made = await allDeliveries(at);
  const eventId = "4711-2-territory.updated";
  const data = StoredEventData.parse(await db.direct.get(fanOutKeys.eventData(at.companyId, eventId)));
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
    const at = await newFanOutPipeline(db, { webhooks: 3, each: 50 });
    await publishIn(at.context, territoryChange(at.companyId, 2));
    const [gone = 0] = at.webhookIds;
    await deleteWebhook(contextOn(db.direct), at.companyId, gone);
    await drain(at, 5_000);
    expect(at.posts).toHaveLength(100);
    expect(at.posts.some(({ url }) => url.endsWith(`/${gone}`))).toBe(false);
    expect(await expectReconciled(at)).toMatchObject({ matched: 150, delivered: 100, cancelled: 50 });
  });
});

describe("a message of a fan-out", () => {
  test("makes no deliveries if another message holds the lease", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 3, each: 50 });
    await publishIn(at.context, territoryChange(at.companyId, 2));
    const first = present(at.queue.splice(0)[0]);
    await Promise.all(Array.from({ length: 5 }, () => consume(at, first.message, false)));
    const queued = at.queue.flatMap(({ message }) => ("deliveryId" in message ? [message.deliveryId] : []));
    expect(queued).toHaveLength(150);
    expect(new Set(queued).size).toBe(150);
  });

  test("that loses its lease makes no further delivery, and leaves the lease to its new owner", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 3, each: 50 });
    await publishIn(at.context, territoryChange(at.companyId, 2));
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
    const at = await newFanOutPipeline(db, { webhooks: 3, each: 50 });
    await publishIn(at.context, territoryChange(at.companyId, 2));
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
    const at = await newFanOutPipeline(db, { webhooks: 10, each: 15 });
    await publishIn(at.context, territoryChange(at.companyId, 2));
    const first = present(at.queue.splice(0)[0]);
    await consume(at, first.message, false);
    const webhookIds = at.queue.flatMap(({ message }) => ("deliveryId" in message ? [message.webhookId] : []));
    for (let from = 0; from < webhookIds.length; from += 10) {
      expect(new Set(webhookIds.slice(from, from + 10)).size).toBe(10);
    }
  });
});

describe("the sweeper", () => {
  test("sends one message for all fan-outs of a company whose messages are lost", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 3, each: 50 });
    for (const version of [2, 3, 4]) await publishIn(at.context, territoryChange(at.companyId, version));
    at.queue.length = 0;
    at.clock += 60_000;
    await sweepOwn(at);
    expect(at.queue.map(({ message }) => message)).toEqual([{ v: 1, fanOut: true, companyId: at.companyId }]);
    expect(await expandAll(at)).toHaveLength(450);
    expect(await expectReconciled(at)).toMatchObject({ matched: 450, waiting: 450, expanding: 0 });
  });
});
