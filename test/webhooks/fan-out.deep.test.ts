/** Tests that each match of a fan-out (an event with many matches) gets one delivery, with the same bytes as without a fan-out. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { fanOutKeys } from "#shared/db/webhook-keys.ts";
import * as limits from "#shared/limits.ts";
import { readDelivery } from "#shared/webhooks/deliver/log.ts";
import { MATCHES_PER_MESSAGE } from "#shared/webhooks/events/fan-out.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { killPointsOf } from "../harness/kills.ts";
import { present } from "../harness/shapes.ts";
import { createRegistration } from "../harness/verbs.ts";
import { automatic, consume, drain, expectReconciled, publishIn, reconcileNow } from "./delivery-pipeline.ts";
import {
  allDeliveries,
  expandAll,
  type FanOutPipeline,
  newFanOutPipeline,
  territoryChange,
} from "./fan-out-pipeline.ts";

const db = faultyDynamoDb();

const addRegistration = ({ companyId, webhookIds: [webhookId = 0] }: FanOutPipeline) =>
  createRegistration(contextOn(db.direct), companyId, webhookId, automatic("territory.updated"));

const Body = z.object({ registrationId: z.int(), data: z.unknown() });

test("each match makes one delivery, with the same bytes as without a fan-out in every attempt and in the log", async () => {
  const at = await newFanOutPipeline(db, { webhooks: 3, each: 40 });
  // The receiver refuses the first attempt of a fifth of the deliveries.
  at.answers = ({ headers }) => ({
    status: headers["X-Service-Attempt"] === "1" && /[07]$/.test(headers["X-Service-Delivery"] ?? "") ? 503 : 200,
  });
  const change = territoryChange(at.companyId, 2);
  await publishIn(at.context, change);
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

describe("repeats and concurrent changes", () => {
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
  test("makes a bounded number of deliveries of small events, and the next message follows a second later", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 12, each: 50 });
    await publishIn(at.context, territoryChange(at.companyId, 2));
    const first = present(at.queue.splice(0)[0]);
    await consume(at, first.message, false);
    expect(at.queue.filter(({ message }) => "deliveryId" in message)).toHaveLength(MATCHES_PER_MESSAGE);
    expect(at.queue.filter(({ message }) => "fanOut" in message)).toMatchObject([{ at: at.clock + 1_000 }]);
    // SQS may deliver a message twice. The second message must change nothing.
    await consume(at, first.message, true);
    expect(await expectReconciled(at)).toMatchObject({ matched: MATCHES_PER_MESSAGE, expanding: 100 });
  });

  test("loses no event that arrives while the previous event finishes", { tags: "sized" }, async () => {
    const at = await newFanOutPipeline(db, { webhooks: 3, each: 35 });
    await publishIn(at.context, territoryChange(at.companyId, 2));
    const first = present(at.queue.splice(0)[0]);
    const calls = at.calls.length;
    await consume(at, first.message, false);
    const steps = at.calls.length - calls;
    for (const step of killPointsOf(steps, 0)) {
      const again = await newFanOutPipeline(db, { webhooks: 3, each: 35 });
      await publishIn(again.context, territoryChange(again.companyId, 2));
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

describe("reconciliation reports", () => {
  const eventId = "4711-2-territory.updated";
  test("a fan-out that does not move, lost data and lost deliveries", async () => {
    const stuck = await newFanOutPipeline(db, { webhooks: 3, each: 35 });
    await publishIn(stuck.context, territoryChange(stuck.companyId, 2));
    stuck.clock += 16 * 60_000;
    expect((await reconcileNow(stuck)).faults).toEqual([
      `event ${eventId}: its fan-out has not moved for a quarter of an hour`,
    ]);

    const empty = await newFanOutPipeline(db, { webhooks: 3, each: 35 });
    await publishIn(empty.context, territoryChange(empty.companyId, 2));
    await expandAll(empty);
    await db.direct.batchRemove([fanOutKeys.eventData(empty.companyId, eventId)]);
    const { faults } = await reconcileNow(empty);
    expect(faults).toHaveLength(105);
    expect(faults[0]).toContain("the data of its event is gone");
    const one = present((await allDeliveries(empty))[0]);
    await db.direct.batchRemove([keys.delivery(empty.companyId, one.webhookId, one.id)]);
    expect((await reconcileNow(empty)).faults).toContain(`${one.id}: is expected and has no row`);
  });
});
