/** Tests debounce windows at their limits: repeated and reordered records, kills at each call, large bodies and long delays. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import * as limits from "#shared/limits.ts";
import { readDelivery } from "#shared/webhooks/deliver/log.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { killPointsOf } from "../harness/kills.ts";
import { sized } from "../harness/tier.ts";
import { updateRegistration } from "../harness/verbs.ts";
import { Body, bodies, change, DELAY, expectEachOnce, MINUTE, names, namesIn, publish } from "./debounce-stage.ts";
import {
  deliveries,
  drain,
  expectReconciled,
  killedAtEach,
  newPipeline,
  type Pipeline,
  publishIn,
  START,
  statesOf,
} from "./delivery-pipeline.ts";

const db = faultyDynamoDb();
const pipeline = (delayMinutes = DELAY): Promise<Pipeline> => newPipeline(db, "prospect.updated", delayMinutes);
const Counted = z.object({ eventCount: z.int() });

describe("a debounce window", () => {
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

describe("concurrently with the sender", () => {
  test("an event published between any two calls of the sender either joins the window or opens the next one", {
    tags: "sized",
  }, async () => {
    const calm = await pipeline();
    await publish(calm, change(calm, 2, 0), change(calm, 3, 1));
    const before = calm.calls.length;
    await drain(calm);
    const outcomes = new Set<string>();
    // Before the sender's first call, the window is still open.
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
    // A post may be repeated only if the sender was killed after the post, before it recorded the result.
    expect(at.posts.length, label).toBeGreaterThanOrEqual(3);
    expect(at.posts.length, label).toBeLessThanOrEqual(4);
    doubled += at.posts.length - 3;
    // The first of the three posts fails, so a kill after it adds no post.
    const lastCall = number - (isAfter ? 1 : 2);
    if (calls[lastCall] === "post" && lastCall !== calls.indexOf("post")) cutOff++;
  });
  expect(calm.posts).toHaveLength(3);
  expect(doubled).toBeGreaterThanOrEqual(cutOff);
  // At most three kill points lie between a post and the record of its result.
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
  test.each([0, 60])(
    "a new delay of %s minutes applies to later windows, and a repeated event is not sent again",
    async (minutes) => {
      const at = await pipeline();
      const early = [change(at, 2, 0), change(at, 3, 1)];
      await publish(at, ...early);
      at.clock = START + 2 * MINUTE;
      await updateRegistration(at.api, at.companyId, at.webhookId, at.registrationId, {
        delayMinutes: minutes,
      });
      await publish(at, ...early, change(at, 4, 11));
      await drain(at);
      expect(at.posts.map(({ body }) => z.parse(Counted, JSON.parse(body)).eventCount).toSorted()).toEqual([1, 2]);
      expect(at.clock).toBe(START + (minutes === 0 ? 11 : 11 + minutes) * MINUTE);
      expect(await expectReconciled(at)).toMatchObject({ matched: 2, delivered: 2 });
    },
  );
});
