/** Tests that an event with many matches (a fan-out) bounds the publisher's work and the size of bodies, with the largest events. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import * as limits from "#shared/limits.ts";
import { BYTES_PER_MESSAGE } from "#shared/webhooks/events/fan-out.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { present } from "../harness/shapes.ts";
import { consume, drain, sweepOwn } from "./delivery-pipeline.ts";
import {
  allDeliveriesOf,
  counted,
  expandAll,
  type FanOutPipeline,
  newFanOutPipeline,
  publish,
  territoryChange,
} from "./fan-out-pipeline.ts";
import { expectReconciled } from "./reconciled.ts";

const db = faultyDynamoDb();
const allDeliveries = (at: FanOutPipeline) => allDeliveriesOf(db, at);

describe("the publisher", () => {
  test("writes two rows and 300 KB for the largest event with 2 000 matches, and sends one message", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 40, each: 50 });
    const { context, written } = counted(at.context);
    await publish({ context }, territoryChange(at.companyId, 2, limits.polygonPointsMax));
    expect(written.rows).toBe(2);
    expect(written.bytes).toBeLessThan(300_000);
    expect(at.queue.map(({ message }) => message)).toEqual([{ v: 1, fanOut: true, companyId: at.companyId }]);
    expect(await expectReconciled(at)).toMatchObject({ matched: 0, expanding: 2_000 });
    // One message creates only some of the deliveries. Their number depends on their size.
    const first = present(at.queue.splice(0)[0]);
    await consume(at, first.message, false);
    const made = at.queue.filter(({ message }) => "deliveryId" in message).length;
    expect(made).toBeGreaterThan(50);
    expect(made).toBeLessThan(BYTES_PER_MESSAGE / 200_000);
    expect(await expectReconciled(at)).toMatchObject({ matched: made, waiting: made, expanding: 2_000 - made });
  });

  test("writes at most two rows for each of thirty such events, and publishes another company's event immediately", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 10, each: 20 });
    const other = await newFanOutPipeline(db, { webhooks: 1, each: 1 });
    const { context, written } = counted(at.context);
    const changes = Array.from({ length: 30 }, (_, i) => territoryChange(at.companyId, i + 2, limits.polygonPointsMax));
    await publish({ context }, ...changes, territoryChange(other.companyId, 2));
    expect(written.rows).toBeLessThanOrEqual(2 * 30 + 2);
    expect(written.mostBytes).toBeLessThan(200_000);
    const own = at.queue.filter(({ message }) => message.companyId === at.companyId);
    expect(own.map(({ message }) => message)).toEqual([{ v: 1, fanOut: true, companyId: at.companyId }]);
    expect(at.queue.filter(({ message }) => message.companyId === other.companyId)).toHaveLength(1);
  });

  test("makes only a bounded number of a company's deliveries itself and leaves the rest to the queue", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 2, each: 45 });
    const { context, written } = counted(at.context);
    await publish({ context }, ...Array.from({ length: 25 }, (_, i) => territoryChange(at.companyId, i + 2)));
    // The publisher itself may write 200 deliveries of a company for one batch. It does so for the first two events, which have 90
    // deliveries each. For these two events together, it also writes one row with which reconciliation checks that no delivery is lost.
    // The deliveries of the other 23 events are created later. The publisher writes one row with their data and matches.
    expect(written.rows).toBe(2 * 90 + 1 + 1);
    await expandAll(at);
    expect(await allDeliveries(at)).toHaveLength(25 * 90);
    expect(await expectReconciled(at)).toMatchObject({ matched: 25 * 90, waiting: 25 * 90, expanding: 0 });
  });
});

describe("with a delay", () => {
  test("the events of a window are one delivery for each registration, with shared data", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 3, each: 40, delayMinutes: 10 });
    for (const version of [2, 3, 4]) await publish(at, territoryChange(at.companyId, version, 3, version));
    await expandAll(at);
    const made = await allDeliveries(at);
    expect(made).toHaveLength(120);
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
      await publish(at, territoryChange(at.companyId, version, limits.polygonPointsMax, version));
    }
    await drain(at);
    const sizes = at.posts.map(({ body }) => Buffer.byteLength(body));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(limits.windowBodyBytes);
    expect(sizes.length).toBeGreaterThan(2);
    await expectReconciled(at);
  });
});
