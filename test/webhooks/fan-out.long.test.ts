/** Tests fan-outs (events with many matches) at their limits: kills at each call, the largest events, and a small heap. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { metered } from "#shared/db/meter.ts";
import * as limits from "#shared/limits.ts";
import { BYTES_PER_MESSAGE } from "#shared/webhooks/events/fan-out.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { killable, unlessKilled, untilDone } from "../harness/killable.ts";
import { killPointsOf } from "../harness/kills.ts";
import { present } from "../harness/shapes.ts";
import { sized } from "../harness/tier.ts";
import {
  allDeliveries,
  expandAll,
  type FanOutPipeline,
  newFanOutPipeline,
  territoryChange,
} from "./fan-out-pipeline.ts";
import { consume, drain, killedAtEach, publishIn, sweepOwn } from "./pipeline.ts";
import { expectReconciled } from "./stored-deliveries.ts";

// Each test gets an empty table, because the sweeper reads the waiting deliveries of all companies.
const db = faultyDynamoDb("test");
const WEBHOOKS = 3;
/** Registrations of each webhook. The three webhooks together have 102 matches: only an event with more than 100 becomes a fan-out. */
const EACH = 34;
const MATCHES = WEBHOOKS * EACH;

const pipeline = (delayMinutes = 0): Promise<FanOutPipeline> =>
  newFanOutPipeline(db, { webhooks: WEBHOOKS, each: EACH, delayMinutes });

async function publish(at: FanOutPipeline, ...versions: number[]): Promise<void> {
  for (const version of versions) {
    await untilDone(() => {
      const context = killable(at.context);
      return publishIn(context, territoryChange(at.companyId, version, 3, version));
    });
  }
}

const idsOf = async (at: FanOutPipeline) => (await allDeliveries(at)).map(({ id }) => id);

/** Expects that each match has one delivery, and each delivery a message. */
async function expectAll(at: FanOutPipeline, queued: readonly string[], label: string): Promise<void> {
  const ids = await idsOf(at);
  expect(ids, label).toHaveLength(MATCHES);
  expect(new Set(queued), label).toEqual(new Set(ids));
  expect(await expectReconciled(at, label)).toMatchObject({ matched: MATCHES, waiting: MATCHES, expanding: 0 });
}

describe("a kill at each call", () => {
  test("leaves one delivery for each match", { tags: "sized" }, async () => {
    let queued: string[] = [];
    const run = async (at: FanOutPipeline): Promise<void> => {
      await publish(at, 2);
      queued = await expandAll(at);
    };
    await killedAtEach({ stage: pipeline, run, turns: [0, 3] }, (at, place) => expectAll(at, queued, place));
  });

  test.each(["before", "after"] as const)(
    "%s it takes effect, with a delay, leaves each event in the window of each registration",
    { tags: "sized" },
    async (when) => {
      const calm = await pipeline(10);
      await publish(calm, 2, 3);
      await expandAll(calm);
      // Before a release, every fifth kill point is enough, because the same calls repeat for each registration.
      const every = sized({ short: 1, wide: 5 });
      const kills = killPointsOf(calm.calls.length, when === "before" ? 1 : 4).filter((_, i) => i % every === 0);
      expect(kills.length).toBeGreaterThan(sized({ short: 2, wide: 5 }));
      for (const number of kills) {
        const at = await pipeline(10);
        at.kill = { at: number, when };
        await publish(at, 2, 3);
        await expectAll(at, await expandAll(at), `${when} ${calm.calls[number - 1]} (${number})`);
      }
    },
  );

  test("that also loses the queue leaves the rest to the sweeper", { tags: "sized" }, async () => {
    let queued: string[] = [];
    const run = async (at: FanOutPipeline): Promise<void> => {
      await publish(at, 2);
      queued = [];
      for (let minute = 0; minute < 13; minute++) {
        queued.push(...(await expandAll(at)));
        at.clock += 60_000;
        await sweepOwn({ ...at, context: { ...at.context, table: db.direct } }).catch(unlessKilled);
      }
    };
    await killedAtEach({ stage: pipeline, run, withQueue: true }, (at, place) => expectAll(at, queued, place));
  });
});

test("a function that continues after its lease expired, concurrently with the next owner, makes no second delivery", {
  tags: "sized",
}, async () => {
  const calm = await pipeline();
  await publish(calm, 2);
  const before = calm.calls.length;
  await expandAll(calm);
  for (const step of killPointsOf(calm.calls.length - before, 5)) {
    const number = before + step;
    const at = await pipeline();
    await publish(at, 2);
    const message = present(at.queue.map((entry) => entry.message)[0]);
    const work = async (): Promise<void> => {
      at.clock += 25_000;
      await consume({ context: { ...at.context, table: db.direct } }, message, true);
    };
    at.meanwhile = { at: number, work };
    await expectAll(at, await expandAll(at), `${calm.calls[number - 1]} (${number})`);
  }
});

describe("the publisher", () => {
  test("needs less than 100 write units for the largest event with 2 000 matches, and sends one message", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 40, each: 50 });
    const change = territoryChange(at.companyId, 2, limits.polygonPointsMax);
    const { usage } = await metered(() => publishIn(at.context, change));
    expect(usage.writeUnits).toBeLessThan(100);
    expect(at.queue.map(({ message }) => message)).toEqual([{ v: 1, fanOut: true, companyId: at.companyId }]);
    expect(await expectReconciled(at)).toMatchObject({ matched: 0, expanding: 2_000 });
    // One message creates deliveries up to a number of bytes, so of these large ones it creates only some.
    const first = present(at.queue.splice(0)[0]);
    await consume(at, first.message, false);
    const made = at.queue.filter(({ message }) => "deliveryId" in message).length;
    expect(made).toBeGreaterThan(50);
    expect(made).toBeLessThan(BYTES_PER_MESSAGE / 200_000);
    expect(await expectReconciled(at)).toMatchObject({ matched: made, waiting: made, expanding: 2_000 - made });
  });

  test("needs no more for each of thirty such events, and publishes another company's event immediately", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 10, each: 20 });
    const other = await newFanOutPipeline(db, { webhooks: 1, each: 1 });
    const changes = Array.from({ length: 30 }, (_, i) => territoryChange(at.companyId, i + 2, limits.polygonPointsMax));
    const { usage } = await metered(() => publishIn(at.context, ...changes, territoryChange(other.companyId, 2)));
    expect(usage.writeUnits).toBeLessThan(30 * 100);
    const own = at.queue.filter(({ message }) => message.companyId === at.companyId);
    expect(own.map(({ message }) => message)).toEqual([{ v: 1, fanOut: true, companyId: at.companyId }]);
    expect(at.queue.filter(({ message }) => message.companyId === other.companyId)).toHaveLength(1);
  });
});

describe("with a delay", () => {
  test("the events of a window are one delivery for each registration, with shared data", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 3, each: 40, delayMinutes: 10 });
    await publish(at, 2, 3, 4);
    await expandAll(at);
    expect(await idsOf(at)).toHaveLength(120);
    expect(await expectReconciled(at)).toMatchObject({ matched: 120, waiting: 120, expanding: 0 });
    at.clock += 11 * 60_000;
    await sweepOwn(at);
    await drain(at, 5_000);
    expect(at.posts).toHaveLength(120);
    const Window = z.object({
      eventCount: z.int(),
      events: z.array(z.object({ data: z.unknown() })),
      data: z.unknown(),
    });
    for (const { body } of at.posts) {
      const { eventCount, events, data } = Window.parse(JSON.parse(body));
      expect(eventCount).toBe(3);
      expect(data).toEqual(events.at(-1)?.data);
      expect(data).toMatchObject({ territory: { name: "North 4" } });
    }
    expect(await expectReconciled(at)).toMatchObject({ matched: 120, delivered: 120 });
  });

  test("bodies with shared data keep their size limit", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 1, each: 2, delayMinutes: 10 });
    for (let version = 2; version < 12; version++) {
      await publishIn(at.context, territoryChange(at.companyId, version, limits.polygonPointsMax, version));
    }
    await drain(at);
    const sizes = at.posts.map(({ body }) => Buffer.byteLength(body));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(limits.windowBodyBytes);
    expect(sizes.length).toBeGreaterThan(2);
    await expectReconciled(at);
  });
});

const Published = z.object({ messages: z.int(), failed: z.int(), bytes: z.int() });

test("a heap of 256 MB suffices to publish full batches of the largest event for 2 000 registrations with the largest filter", async () => {
  const filter = JSON.stringify({ "territory.totalProperties": Array.from({ length: 1_000 }, (_, i) => i) });
  expect(filter.length).toBeGreaterThan(limits.filterBytes * 0.9);
  expect(filter.length).toBeLessThanOrEqual(limits.filterBytes);
  const at = await newFanOutPipeline(db, {
    webhooks: limits.webhooksPerCompany,
    each: limits.registrationsPerWebhook,
    filter,
  });
  const { companyId } = at;
  const points = limits.polygonPointsMax;
  const workerData = { endpoint: db.directEndpoint, companyId, batches: 2, records: 41, points };
  const resourceLimits = { maxOldGenerationSizeMb: 208, maxYoungGenerationSizeMb: 48 };
  const worker = new Worker(new URL("./publishing-worker.ts", import.meta.url), { workerData, resourceLimits });
  const [published] = await once(worker, "message");
  const { messages, failed, bytes } = Published.parse(published);
  expect(failed).toBe(0);
  // Lambda passes at most 6 MB of records in one batch, so these batches are nearly as large as possible.
  expect(bytes).toBeGreaterThan(5_500_000);
  // The publisher sends one message for at most 25 events, so each of the two batches of 41 records causes two messages.
  expect(messages).toBe(2 * 2);
  expect(await expectReconciled(at)).toMatchObject({ matched: 0, expanding: 2 * 41 * 2_000 });
});
