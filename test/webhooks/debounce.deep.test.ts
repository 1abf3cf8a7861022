/**
 * Tests webhooks with a delay. All events of one record within the window must arrive in one delivery, even if functions are killed or
 * repeated, or run concurrently. Events that together exceed the maximum size of a body must arrive in several deliveries.
 */
import { beforeAll, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import type { EventContext } from "#shared/context.ts";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { readDelivery } from "#shared/webhooks/deliver/log.ts";
import { pauseWebhook, resumeWebhook } from "#shared/webhooks/deliver/paused-backlog.ts";
import { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import type { RowChange } from "#shared/webhooks/events/row-events.ts";
import { sweep } from "#shared/webhooks/reconcile/sweep.ts";
import { deleteRegistration, updateRegistration } from "#shared/webhooks/subscriptions/registrations.ts";
import { readWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { killPointsOf } from "../harness/kills.ts";
import { createdProspect, deliveries, drain, Killed, newPipeline, type Pipeline, START } from "./delivery-pipeline.ts";
import { expectReconciled } from "./reconciled.ts";

const db = faultyDynamoDb();
beforeAll(async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
});

const MINUTE = 60_000;
const DELAY = 10;

const pipeline = (delayMinutes = DELAY): Promise<Pipeline> => newPipeline(db, "prospect.updated", delayMinutes);

/** Returns the change of a prospect to this version, `minutes` minutes after the start of the test. */
function change({ companyId }: Pipeline, version: number, minutes: number, id = 1, filler?: string): RowChange {
  const row = (v: number) => ({
    ...createdProspect(companyId, id),
    name: `name ${v}`,
    customFieldData: filler === undefined ? null : JSON.stringify({ filler, v }),
    updatedAt: new Date(START + minutes * MINUTE).toISOString(),
    version: v,
  });
  return { before: prospectItem(row(version - 1)), after: prospectItem(row(version)) };
}

const publishIn = (context: EventContext, row: RowChange) => publishChanges(context, batchReads(context), [row]);

/** Publishes each stream record. After each kill, it publishes the record again, as Lambda does. */
async function publish(at: Pipeline, ...rows: RowChange[]): Promise<void> {
  for (const row of rows) {
    for (;;) {
      try {
        await publishIn(at.context, row);
        break;
      } catch (error) {
        if (!(error instanceof Killed)) throw error;
      }
    }
  }
}

const Body = z.object({
  id: z.string(),
  createdAt: z.string(),
  eventCount: z.int(),
  data: z.object({ prospect: z.object({ id: z.int(), name: z.string() }) }),
  events: z.array(
    z.object({
      id: z.string(),
      createdAt: z.string(),
      data: z.object({ prospect: z.object({ id: z.int(), name: z.string() }) }),
    }),
  ),
});

/** Returns the body of each delivery. Fails the test if two posts of the same delivery have different bodies. */
function bodies(at: Pipeline): z.infer<typeof Body>[] {
  const byId = new Map<string, string>();
  for (const { headers, body } of at.posts) {
    const id = headers["X-Service-Delivery"] ?? "";
    expect(byId.get(id) ?? body).toBe(body);
    byId.set(id, body);
  }
  return [...byId.values()].map((body) => z.parse(Body, JSON.parse(body)));
}

const Counted = z.object({ eventCount: z.int() });

const namesIn = ({ events }: z.infer<typeof Body>): string[] => events.map(({ data }) => data.prospect.name);
const names = (...versions: number[]): string[] => versions.map((version) => `name ${version}`);

/** Expects that each of these versions of the prospect is in exactly one body, and that reconciliation finds no fault. */
async function expectEachOnce(at: Pipeline, versions: readonly number[], label?: string): Promise<void> {
  const found = bodies(at).flatMap(namesIn).toSorted();
  expect(found, label).toEqual(names(...versions).toSorted());
  for (const { eventCount, events, data } of bodies(at)) {
    expect(eventCount, label).toBe(events.length);
    expect(data, label).toEqual(events.at(-1)?.data);
  }
  const { matched, delivered } = await expectReconciled(at, label);
  expect({ matched, delivered }, label).toEqual({ matched: bodies(at).length, delivered: bodies(at).length });
}

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

  test("has the same events when the stream repeats, splits and reorders records", async () => {
    for (let round = 0; round < 10; round++) {
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

  test("is shown in the log with the events that it contains so far", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0), change(at, 3, 1));
    const [delivery] = await deliveries(at);
    const shown = async () => {
      const { body } = await readDelivery(contextOn(db.direct), at.companyId, at.webhookId, delivery?.id ?? "");
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
    // Step 1 is the sender's first call, and is always tested. The window is still open before this call, so the event can join it.
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

  test("twenty events each arrive once", async () => {
    for (let round = 0; round < 4; round++) {
      const at = await pipeline();
      await publish(at, change(at, 2, 0));
      at.clock = START + DELAY * MINUTE;
      const versions = Array.from({ length: 20 }, (_, i) => i + 3);
      await Promise.all([drain(at), ...versions.map((version) => publish(at, change(at, version, 1)))]);
      await drain(at);
      await expectEachOnce(at, [2, ...versions]);
    }
  });
});

describe("a kill at each call", () => {
  test.each(["before", "after"] as const)(
    "%s it takes effect leaves each event in one delivery, whose bytes stay the same",
    { tags: "sized" },
    async (when) => {
      const run = async (at: Pipeline): Promise<void> => {
        at.answers = (_, number) => ({ status: number === 1 ? 500 : 200 });
        await publish(at, change(at, 2, 0), change(at, 3, 1), change(at, 4, 12));
        await drain(at);
      };
      const calm = await pipeline();
      await run(calm);
      expect(calm.posts).toHaveLength(3);
      let doubled = 0;
      const kills = killPointsOf(calm.calls.length, when === "before" ? 0 : 2);
      for (const number of kills) {
        const at = await pipeline();
        at.kill = { at: number, when };
        await run(at);
        const label = `${when} ${calm.calls[number - 1]} (${number})`;
        await expectEachOnce(at, [2, 3, 4], label);
        expect(bodies(at), label).toHaveLength(2);
        expect(
          (await deliveries(at)).map(({ state }) => state),
          label,
        ).toEqual(["delivered", "delivered"]);
        // A post may be repeated only if the sender was killed after the post, before it recorded the result.
        expect(at.posts.length, label).toBeGreaterThanOrEqual(3);
        expect(at.posts.length, label).toBeLessThanOrEqual(4);
        doubled += at.posts.length - 3;
      }
      // Without a kill there are three posts. The first post fails, so the service repeats it anyway, and a kill after it adds no post. A
      // kill between another post and the record of its result makes the service repeat the post. Recording a result takes one or two
      // writes, so at most three kill points lie between a post and its record.
      const afterPost = (number: number) => number - (when === "before" ? 2 : 1);
      const isCutOff = (number: number) =>
        calm.calls[afterPost(number)] === "post" && afterPost(number) !== calm.calls.indexOf("post");
      expect(doubled).toBeGreaterThanOrEqual(kills.filter(isCutOff).length);
      expect(doubled).toBeLessThanOrEqual(3 * 3);
    },
  );

  test("the sweeper queues every due window whose message is lost", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0), change(at, 3, 1));
    at.queue.length = 0;
    at.clock = START + DELAY * MINUTE;
    await sweep(at.context, { assume: "messages-kept" });
    const own = () => at.queue.filter(({ message }) => message.companyId === at.companyId);
    expect(own()).toEqual([]);
    at.clock += MINUTE;
    await sweep(at.context, { assume: "messages-kept" });
    expect(own()).toHaveLength(1);
    // The sweeper, which replaces lost messages, also sends messages for deliveries of other tests. This test cannot process those
    // messages, so it removes them from the queue.
    at.queue.splice(0, at.queue.length, ...own());
    await drain(at);
    await expectEachOnce(at, [2, 3]);
  });
});

test("events that exceed the size limit of one body are divided into several bodies with the same due time", async () => {
  const at = await pipeline();
  const filler = "x".repeat(20_000);
  const versions = Array.from({ length: 120 }, (_, i) => i + 2);
  const reads = batchReads(at.context);
  const changes = versions.map((version) => change(at, version, version / 1_000, 1, filler));
  await publishChanges(at.context, reads, changes);
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
  expect(delivery?.expiresAt).toBe((START + 33 * 86_400_000) / 1_000);
  await drain(at);
  await expectEachOnce(at, [2, 3]);
  expect(at.posts).toHaveLength(1);
  expect(at.clock).toBe(START + 3 * 86_400_000);
});

describe("a change during the delay", () => {
  const registrationOf = async (at: Pipeline) => {
    const { registrations } = await readWebhook(contextOn(db.direct), at.companyId, at.webhookId);
    return registrations[0]?.id ?? 0;
  };
  const api = (at: Pipeline) => contextOn(db.direct, { now: () => at.clock });

  test("deleting the registration cancels its waiting delivery", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0));
    await deleteRegistration(api(at), at.companyId, at.webhookId, await registrationOf(at));
    await publish(at, change(at, 3, 1));
    await drain(at);
    expect(at.posts).toEqual([]);
    expect((await deliveries(at)).map(({ state }) => state)).toEqual(["cancelled"]);
    expect(await expectReconciled(at)).toMatchObject({ matched: 1, cancelled: 1 });
  });

  test("a paused webhook keeps its windows, each of which is sent with its own events after the resumption", async () => {
    const at = await pipeline();
    await publish(at, change(at, 2, 0));
    await pauseWebhook(api(at), at.companyId, at.webhookId);
    await drain(at);
    await publish(at, change(at, 3, 5), change(at, 4, 15));
    at.clock = START + 60 * MINUTE;
    await drain(at);
    expect(at.posts).toEqual([]);
    expect(await expectReconciled(at)).toMatchObject({ matched: 2, paused: 2 });
    await resumeWebhook(api(at), at.context.queue, at.companyId, at.webhookId);
    await drain(at);
    expect(bodies(at).map(namesIn)).toEqual([names(2, 3), names(4)]);
  });

  test.each([0, 60])(
    "a new delay of %s minutes applies to later windows, and a repeated event is not sent again",
    async (minutes) => {
      const at = await pipeline();
      const early = [change(at, 2, 0), change(at, 3, 1)];
      await publish(at, ...early);
      at.clock = START + 2 * MINUTE;
      await updateRegistration(api(at), at.companyId, at.webhookId, await registrationOf(at), {
        delayMinutes: minutes,
      });
      await publish(at, ...early, change(at, 4, 11));
      await drain(at);
      expect(at.posts.map(({ body }) => z.parse(Counted, JSON.parse(body)).eventCount).toSorted()).toEqual([1, 2]);
      expect(at.clock).toBe(START + (minutes === 0 ? 11 : 11 + minutes) * MINUTE);
      expect(await expectReconciled(at)).toMatchObject({ matched: 2, delivered: 2 });
    },
  );

  test("an event that was sent without delay is not sent again after a delay is set", async () => {
    const at = await pipeline(0);
    const early = [change(at, 2, 0), change(at, 3, 0.1)];
    await publish(at, ...early);
    await drain(at);
    await updateRegistration(api(at), at.companyId, at.webhookId, await registrationOf(at), { delayMinutes: DELAY });
    await publish(at, ...early, change(at, 4, 2), ...early, change(at, 5, 3));
    await drain(at);
    expect(at.posts).toHaveLength(3);
    expect(z.parse(Counted, JSON.parse(at.posts[2]?.body ?? "")).eventCount).toBe(2);
    expect(await expectReconciled(at)).toMatchObject({ matched: 3, delivered: 3 });
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
});
