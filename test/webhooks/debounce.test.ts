/**
 * Tests that the events of a record within a registration's delay become one delivery, which contains each event once, also after repeated
 * and reordered records, kills at each call, large bodies and long delays.
 */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import * as limits from "#shared/limits.ts";
import { readDelivery } from "#shared/webhooks/deliver/log.ts";
import { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { killPointsOf } from "../harness/kills.ts";
import { sized } from "../harness/tier.ts";
import { deleteRegistration, updateRegistration } from "../harness/verbs.ts";
import { Body, bodies, change, DELAY, expectEachOnce, MINUTE, names, namesIn, publish } from "./debounce-stage.ts";
import { START } from "./fixtures.ts";
import { drain, killedAtEach, newPipeline, type Pipeline, publishIn } from "./pipeline.ts";
import { deliveries, expectReconciled, statesOf } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const pipeline = (delayMinutes = DELAY): Promise<Pipeline> => newPipeline(db, "prospect.updated", delayMinutes);
const Counted = z.object({ eventCount: z.int() });

describe("a debounce window", () => {
  test("is one delivery with all events of a record up to its due time, after which the next window opens", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0), change(at, 3, 1), change(at, 4, 9.99), change(at, 5, 10), change(at, 6, 11));
    await publish(at, change(at, 2, 3, 77));
    await drain(at);
    const [first, other, second, ...more] = bodies(at);
    expect(more).toEqual([]);
    expect(first && namesIn(first)).toEqual(names(2, 3, 4));
    expect(first?.data.prospect.name).toBe("name 4");
    await expectReconciled(at);
    expect(first?.createdAt).toBe(new Date(START).toISOString());
    expect(second && namesIn(second)).toEqual(names(5, 6));
    expect(other?.data.prospect.id).toBe(77);
    const sentAt = at.posts.map(({ headers }) => Number(headers["webhook-timestamp"]) * 1_000 - START);
    expect(sentAt).toEqual([10 * MINUTE, 13 * MINUTE, 20 * MINUTE]);
    expect((await deliveries(at)).every(({ state }) => state === "delivered")).toBe(true);
    expect(await db.keysOf(`C#${at.companyId}#D#`)).not.toContainEqual(
      expect.objectContaining({ sk: expect.stringMatching(/^W#/) }),
    );
  });

  test("that was sent is not reopened by a late event, which opens a new window", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0));
    await drain(at);
    await publish(at, change(at, 3, 5));
    expect(at.clock).toBe(START + 10 * MINUTE);
    await drain(at);
    expect(bodies(at).map(namesIn)).toEqual([names(2), names(3)]);
    expect(at.clock).toBe(START + 15 * MINUTE);
  });

  test("has the same events when the stream repeats, splits and reorders records", { tags: "sized" }, async () => {
    for (let round = 0; round < sized({ short: 2, wide: 10 }); round++) {
      const at = await pipeline();
      const rows = [2, 3, 4, 5, 6, 7].map((version) => change(at, version, version));
      const shuffled = [...rows, ...rows, ...rows].sort(() => Math.random() - 0.5);
      await publish(at, ...shuffled);
      await drain(at);
      await expectEachOnce(at, [2, 3, 4, 5, 6, 7]);
      expect(bodies(at).map(namesIn)).toEqual([names(2, 3, 4, 5, 6, 7)]);
      await publish(at, ...rows);
      await drain(at);
      expect(at.posts).toHaveLength(1);
    }
  });

  test("is shown in the log with the events that it contains so far", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0), change(at, 3, 1));
    const [delivery] = await deliveries(at);
    const shown = async () => {
      const { body } = await readDelivery(at.api, at.companyId, at.webhookId, delivery?.id ?? "");
      return namesIn(z.parse(Body, JSON.parse(body)));
    };
    expect(await shown()).toEqual(names(2, 3));
    await publish(at, change(at, 4, 2));
    expect(await shown()).toEqual(names(2, 3, 4));
  });
});

test("an event published between any two calls of the sender either joins the window or opens the next one", {
  tags: "sized",
}, async () => {
  const calm = await pipeline();
  await publish(calm, change(calm, 2, 0), change(calm, 3, 1));
  const before = calm.calls.length;
  await drain(calm);
  const outcomes = new Set<string>();
  // Before the sender's first call (step 1), the window is still open, so this step is always tested.
  for (const step of new Set([1, ...killPointsOf(calm.calls.length - before, 0)])) {
    const number = before + step;
    for (const late of [9, 12]) {
      const at = await pipeline();
      await publish(at, change(at, 2, 0), change(at, 3, 1));
      const work = () => publishIn({ ...at.context, table: db.direct }, change(at, 4, late));
      at.meanwhile = { at: number, work };
      await drain(at);
      await expectEachOnce(at, [2, 3, 4], `${late} before ${calm.calls[number - 1]} (${number})`);
      outcomes.add(`${late} ${bodies(at).length}`);
    }
  }
  expect([...outcomes].toSorted()).toEqual(["12 2", "9 1", "9 2"]);
});

test("a kill at each call leaves each event in one delivery, whose bytes stay the same", {
  tags: "sized",
}, async () => {
  const run = async (at: Pipeline): Promise<void> => {
    at.answers = (_, number) => ({ status: number === 1 ? 500 : 200 });
    await publish(at, change(at, 2, 0), change(at, 3, 1), change(at, 4, 12));
    await drain(at);
  };
  let [doubled, cutOff] = [0, 0];
  const calm = await killedAtEach({ stage: pipeline, run }, async (at, label, number, calls, isAfter) => {
    await expectEachOnce(at, [2, 3, 4], label);
    expect(bodies(at), label).toHaveLength(2);
    expect(await statesOf(at), label).toEqual(["delivered", "delivered"]);
    // A post may be repeated only if the sender was killed between the post and the record of the post's result.
    expect(at.posts.length, label).toBeGreaterThanOrEqual(3);
    expect(at.posts.length, label).toBeLessThanOrEqual(4);
    doubled += at.posts.length - 3;
    // The first of the three posts fails, so a kill after it adds no post.
    const lastCall = number - (isAfter ? 1 : 2);
    if (calls[lastCall] === "post" && lastCall !== calls.indexOf("post")) cutOff++;
  });
  expect(calm.posts).toHaveLength(3);
  expect(doubled).toBeGreaterThanOrEqual(cutOff);
  // Between a post and the record of its result are at most three kill points. There are three posts, and kills before and after a call.
  expect(doubled).toBeLessThanOrEqual(2 * 3 * 3);
});

test("events that exceed the size limit of one body are divided into several bodies with the same due time", async () => {
  const at = await pipeline();
  const filler = "x".repeat(20_000);
  const versions = Array.from({ length: 120 }, (_, i) => i + 2);
  await publishIn(at.context, ...versions.map((version) => change(at, version, version / 1_000, 1, filler)));
  await drain(at);
  await expectEachOnce(at, versions);
  const sizes = at.posts.map(({ body }) => Buffer.byteLength(body));
  expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000_000);
  expect(Math.max(...sizes)).toBeGreaterThan(930_000);
  expect(at.posts.length).toBe(Math.ceil(sizes.reduce((sum, size) => sum + size) / 1_000_000));
  const due = START + (2 / 1_000) * MINUTE + DELAY * MINUTE;
  for (const { headers } of at.posts) expect(headers["webhook-timestamp"]).toBe(String(Math.ceil(due / 1_000)));
});

test("a delay of three days needs many messages, and its delivery is kept for 30 days after its due time", async () => {
  const at = await pipeline(3 * 1_440);
  await publish(at, change(at, 2, 0), change(at, 3, 3 * 1_440 - 1));
  const [delivery] = await deliveries(at);
  expect(delivery?.expiresAt).toBe((START + 3 * 86_400_000 + limits.deliveryKeptMs) / 1_000);
  await drain(at);
  await expectEachOnce(at, [2, 3]);
  expect(at.posts).toHaveLength(1);
  expect(at.clock).toBe(START + 3 * 86_400_000);
});

describe("a change during the delay", () => {
  test("deleting the registration cancels its waiting delivery", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0));
    await deleteRegistration(at.api, at.companyId, at.webhookId, at.registrationId);
    await publish(at, change(at, 3, 1));
    await drain(at);
    expect(at.posts).toEqual([]);
    expect(await statesOf(at)).toEqual(["cancelled"]);
    expect(await expectReconciled(at)).toMatchObject({ matched: 1, cancelled: 1 });
  });

  test("a paused webhook keeps its windows, each of which is sent with its own events after the resumption", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0));
    await at.pause();
    await drain(at);
    await publish(at, change(at, 3, 5), change(at, 4, 15));
    at.clock = START + 60 * MINUTE;
    await drain(at);
    expect(at.posts).toEqual([]);
    expect(await expectReconciled(at)).toMatchObject({ matched: 2, paused: 2 });
    await at.resume();
    await drain(at);
    expect(bodies(at).map(namesIn)).toEqual([names(2, 3), names(4)]);
  });

  test("an event that was sent without delay is not sent again after a delay is set", async () => {
    const at = await pipeline(0);
    const early = [change(at, 2, 0), change(at, 3, 0.1)];
    await publish(at, ...early);
    await drain(at);
    await updateRegistration(at.api, at.companyId, at.webhookId, at.registrationId, { delayMinutes: DELAY });
    await publish(at, ...early, change(at, 4, 2), ...early, change(at, 5, 3));
    await drain(at);
    expect(at.posts).toHaveLength(3);
    expect(z.parse(Counted, JSON.parse(at.posts[2]?.body ?? "")).eventCount).toBe(2);
    expect(await expectReconciled(at)).toMatchObject({ matched: 3, delivered: 3 });
  });

  test("an event that another publisher sends without delay at the same time is not sent again", async () => {
    const at = await pipeline(0);
    await publish(at, change(at, 2, 0));
    await drain(at);
    const [sent] = await deliveries(at);
    await updateRegistration(at.api, at.companyId, at.webhookId, at.registrationId, { delayMinutes: DELAY });
    // The first read of the delivery finds nothing, as if another publisher had written the delivery after this read.
    const isHidden = new Set([keys.delivery(at.companyId, at.webhookId, sent?.id ?? "").sk]);
    const get: Table["get"] = async (key) => (isHidden.delete(key.sk) ? undefined : db.direct.get(key));
    await publishIn({ ...at.context, table: { ...db.direct, get } }, change(at, 2, 0));
    expect(isHidden.size).toBe(0);
    await drain(at);
    expect(at.posts).toHaveLength(1);
    expect(await expectReconciled(at)).toMatchObject({ matched: 1, delivered: 1 });
  });

  test("a redelivery before the due time closes the window, and a later event opens the next one", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0));
    const [delivery] = await deliveries(at);
    const key = keys.delivery(at.companyId, at.webhookId, delivery?.id ?? "");
    const now = new Date(START).toISOString();
    const item = await db.direct.write({ update: key, change: { set: { dueAt: now } } });
    expect(z.parse(StoredDelivery, item).dueAt).toBe(now);
    at.queue.splice(0, 1, ...at.queue.map((entry) => ({ ...entry, at: START })));
    await drain(at);
    await publish(at, change(at, 3, 1));
    await drain(at);
    expect(bodies(at).map(namesIn)).toEqual([names(2), names(3)]);
  });

  test.each([0, 60])(
    "a new delay of %s minutes applies to later windows, and a repeated event is not sent again",
    async (minutes) => {
      const at = await pipeline();
      const early = [change(at, 2, 0), change(at, 3, 1)];
      await publish(at, ...early);
      at.clock = START + 2 * MINUTE;
      await updateRegistration(at.api, at.companyId, at.webhookId, at.registrationId, { delayMinutes: minutes });
      await publish(at, ...early, change(at, 4, 11));
      await drain(at);
      expect(at.posts.map(({ body }) => z.parse(Counted, JSON.parse(body)).eventCount).toSorted()).toEqual([1, 2]);
      expect(at.clock).toBe(START + (minutes === 0 ? 11 : 11 + minutes) * MINUTE);
      expect(await expectReconciled(at)).toMatchObject({ matched: 2, delivered: 2 });
    },
  );
});
