/**
 * Tests the webhook events of bulk jobs. They may be thousands, and must not delay other events, not even those of the same webhook.
 * bulk-deliveries.deep.test.ts tests which events a job causes.
 */
import { beforeEach, describe, expect, test } from "vitest";
import { messageGroup } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import { metered } from "#shared/db/meter.ts";
import type { StoredBulk } from "#shared/jobs/bulk/stored.ts";
import { prospectItem, storedProspect } from "#shared/prospects/stored.ts";
import type { RowChange } from "#shared/webhooks/events/row-events.ts";
import { slotLimit } from "#shared/webhooks/limiter/limiter.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { killable, untilDone } from "../harness/killable.ts";
import { pauseWebhook, resumeWebhook } from "../harness/verbs.ts";
import { DeliverySimulation } from "./delivery-simulation.ts";
import { expandAll } from "./fan-out-pipeline.ts";
import { bulkChange, START } from "./fixtures.ts";
import { drain, killedAtEach, newPipeline, type Pipeline, publishIn } from "./pipeline.ts";
import { deliveries, expectReconciled, sentIds } from "./stored-deliveries.ts";

const db = faultyDynamoDb("test");
const SECOND = 1_000;
const MINUTE = 60 * SECOND;

const publish = ({ context }: Pick<Pipeline, "context">, ...changes: RowChange[]) => publishIn(context, ...changes);

const jobOf = ({ companyId }: Pipeline, events: StoredBulk["events"]): StoredBulk => ({
  ...({ type: "bulkJob", id: 77, companyId, kind: "prospect_bulk", state: "running", events } as const),
  ...{ total: 10, changed: 5, unchanged: 1, skipped: 1, failed: 1, chunks: 1, done: 0, isOpen: true, isAdmitted: true },
  ...{ createdBy: 1, createdAt: iso(START), updatedAt: iso(START), runs: 0 },
});

test.each([
  ["completed", "summary", 1],
  ["cancelled", "summary", 1],
  ["failed", "summary", 1],
  ["completed", "each", 1],
  ["completed", "none", 0],
  ["paused", "summary", 0],
] as const)(
  "a job that ends as %s, with the events %s, makes %i events for the whole job",
  async (state, events, count) => {
    const at = await newPipeline(db, "prospect.bulk_completed");
    const before = jobOf(at, events);
    await publish(at, { before, after: before });
    expect(at.queue).toEqual([]);
    const after = { ...before, state, endedAt: iso(START + SECOND), updatedAt: iso(START + SECOND) };
    await publish(at, { before, after });
    // Neither a repeated record, nor a change of the ended job, nor a second end makes a second event.
    await publish(at, { before, after });
    await publish(at, { before: after, after: { ...after, undoneBy: 78 } });
    await publish(at, { before, after: { ...after, updatedAt: iso(START + MINUTE) } });
    expect(new Set(at.queue.map(({ message }) => messageGroup(message))).size).toBe(count);
    expect(at.queue.filter(({ message }) => messageGroup(message).endsWith("-bulk"))).toEqual([]);
    await drain(at);
    const job = { id: 77, state, total: 10, changed: 5, unchanged: 1, skipped: 1, failed: 1, unprocessed: 2 };
    const event = { event: "prospect.bulk_completed", createdAt: iso(START + SECOND), data: { job } };
    expect(at.posts.map(({ body }) => JSON.parse(body))).toMatchObject(count === 0 ? [] : [event]);
  },
);

describe("the publisher", () => {
  const changesOf = ({ companyId }: Pipeline, first: number, count: number) =>
    Array.from({ length: count }, (_, i) => bulkChange(companyId, first + i));

  test("needs two write units and one message for 25 changes, and the rest is created at a limited rate", async () => {
    const at = await newPipeline(db, "prospect.updated");
    const { usage } = await metered(() => publish(at, ...changesOf(at, 1, 25)));
    expect(usage.writeUnits).toBe(2);
    expect(at.queue.map(({ message }) => message)).toEqual([
      { v: 1, fanOut: true, companyId: at.companyId, isBulk: true },
    ]);
    expect(await expectReconciled(at)).toMatchObject({ matched: 0, expanding: 25 });
    const queued = await expandAll(at);
    expect(new Set(queued).size).toBe(25);
    expect(await expectReconciled(at)).toMatchObject({ matched: 25, waiting: 25, expanding: 0 });
  });

  test("makes each delivery once if the stream repeats the changes in other groups", async () => {
    const at = await newPipeline(db, "prospect.updated");
    const all = changesOf(at, 1, 12);
    for (const [from, to] of [
      [0, 7],
      [3, 5],
      [3, 12],
    ]) {
      await publish(at, ...all.slice(from, to));
    }
    await drain(at);
    await publish(at, ...all);
    await drain(at);
    expect(sentIds(at).toSorted((a, b) => a - b)).toEqual(all.map((_, i) => i + 1));
    expect(await expectReconciled(at)).toMatchObject({ matched: 12, delivered: 12, expanding: 0 });
  });

  test("puts an event with large data into a row of its own", async () => {
    const at = await newPipeline(db, "prospect.updated");
    const { before, after } = bulkChange(at.companyId, 1);
    const customFieldData = JSON.stringify({ filler: "x".repeat(20_000) });
    const large = prospectItem({ ...storedProspect(after), customFieldData });
    await publish(at, { before, after: large }, bulkChange(at.companyId, 2));
    await drain(at);
    expect(at.posts.map(({ body }) => body.length > 20_000).toSorted()).toEqual([false, true]);
    expect(await expectReconciled(at)).toMatchObject({ matched: 2, delivered: 2, expanding: 0 });
  });
});

describe("beside the events of a bulk job", () => {
  let simulation: DeliverySimulation;
  beforeEach(() => {
    simulation = new DeliverySimulation(db, 10);
  });

  test.each([
    ["quick", 900, 60],
    ["slow", 9_900, 15],
  ])("an event of the same webhook is sent at once, if its receiver is %s", async (_, ms, events) => {
    const hook = await simulation.hook("prospect.updated");
    simulation.answers = () => ({ ms });
    await simulation.publishBulk(hook, 1, events);
    await simulation.runUntil(START + 2 * SECOND);
    const isBulk = ({ post }: { post: { body: string } }): boolean => post.body.includes('"bulk"');
    expect(simulation.sent.length).toBeLessThan(events);
    expect(simulation.sent.every(isBulk)).toBe(true);
    const at = simulation.clock;
    await publish(simulation, bulkChange(hook.companyId, 1_000, { version: 3, marked: 2 }));
    await simulation.runUntil(at + 5 * SECOND);
    expect(simulation.sent.filter((sent) => !isBulk(sent)).map((sent) => sent.at - at)).toEqual([0]);
    // A quick receiver gets several deliveries with one slot, so its concurrent requests do not show the number of slots.
    if (ms > SECOND) expect(simulation.mostInFlight.get(hook.url)).toBe(slotLimit(10, true, true) + 1);
    await simulation.runUntil(START + 5 * MINUTE);
    expect(simulation.sent).toHaveLength(events + 1);
    await expectReconciled({ db, companyId: hook.companyId, clock: simulation.clock });
  });

  test.each([4, 10])("no event of a user waits behind an event of the job, with %i senders", async (count) => {
    simulation = new DeliverySimulation(db, count);
    const [hook, other] = [await simulation.hook("prospect.updated"), await simulation.hook("prospect.updated")];
    simulation.answers = () => ({ ms: 300 });
    await simulation.publishBulk(hook, 1, 75);
    await simulation.runUntil(START + SECOND);
    const behind: number[] = [];
    for (let step = 0; step < 3; step++) {
      for (const { companyId, url } of [hook, other]) {
        const before = simulation.sent.length;
        await publish(simulation, bulkChange(companyId, 1_000 + step, { version: 3, marked: 2 }));
        await simulation.runUntil(simulation.clock + SECOND / 2);
        const later = simulation.sent.slice(before);
        behind.push(later.findIndex(({ url: to, post }) => to === url && !post.body.includes('"bulk"')));
      }
    }
    expect(behind).toEqual(behind.map(() => 0));
    // The users' events have overtaken some of the job's 75 events.
    expect(simulation.sent.length).toBeLessThan(75 + behind.length);
  });

  test("an event of the same webhook is the first to be sent after a pause", async () => {
    const hook = await simulation.hook("prospect.updated");
    const { api } = simulation;
    await pauseWebhook(api, hook.companyId, hook.webhookId);
    await simulation.publishBulk(hook, 1, 30);
    await simulation.runUntil(START + 10 * SECOND);
    await publish(simulation, bulkChange(hook.companyId, 1_000, { version: 3, marked: 2 }));
    await simulation.runUntil(START + 20 * SECOND);
    expect(simulation.sent).toEqual([]);
    await resumeWebhook(api, simulation.context.queue, hook.companyId, hook.webhookId);
    await simulation.runUntil(START + 3 * MINUTE);
    expect(simulation.sent).toHaveLength(31);
    expect(simulation.sent.findIndex(({ post }) => !post.body.includes('"bulk"'))).toBe(0);
    await expectReconciled({ db, companyId: hook.companyId, clock: simulation.clock });
  });

  test("an event that joins a delivery of the job in a debounce window takes the delivery out of the job's queue", async () => {
    const at = await newPipeline(db, "prospect.updated", 10);
    await publish(at, bulkChange(at.companyId, 1));
    const queued: string[] = [];
    const { queue } = at.context;
    const send: typeof queue.send = async (entries) => {
      queued.push(...entries.map(({ message }) => messageGroup(message)));
      return queue.send(entries);
    };
    await expandAll({ ...at, context: { ...at.context, queue: { ...queue, send } } });
    expect(new Set(queued)).toEqual(new Set([`${at.companyId}-bulk`]));
    expect(await deliveries(at)).toMatchObject([{ isBulk: true }]);
    await publish(at, bulkChange(at.companyId, 1, { version: 3, marked: 2 }));
    expect(at.queue.map(({ message }) => messageGroup(message))).toEqual([String(at.companyId)]);
    const [delivery] = await deliveries(at);
    expect(delivery?.isBulk).toBeUndefined();
    await publish(at, bulkChange(at.companyId, 1, { version: 4 }));
    await drain(at);
    expect(at.posts).toHaveLength(1);
    expect(JSON.parse(at.posts[0]?.body ?? "")).toMatchObject({ eventCount: 3 });
    await expectReconciled(at);
  });
});

const CHANGES = 7;

const publishAgain = (at: Pipeline): Promise<void> =>
  untilDone(() => {
    const changes = Array.from({ length: CHANGES }, (_, i) => bulkChange(at.companyId, i + 1));
    return publish({ context: killable(at.context) }, ...changes);
  });

test.each([
  ["without a delay", 0],
  ["with a debounce window", 10],
])(
  "a kill at each call leaves one delivery for each change, with a message for each, %s",
  { tags: "sized" },
  async (_, delayMinutes) => {
    let queued: string[] = [];
    const run = async (at: Pipeline): Promise<void> => {
      await publishAgain(at);
      queued = await expandAll(at);
    };
    const stage = () => newPipeline(db, "prospect.updated", delayMinutes);
    await killedAtEach({ stage, run, turns: [0, 1] }, async (at, label) => {
      const made = await deliveries(at);
      expect(made, label).toHaveLength(CHANGES);
      expect(new Set(queued), label).toEqual(new Set(made.map(({ id }) => id)));
      const whole = { matched: CHANGES, waiting: CHANGES, expanding: 0 };
      expect(await expectReconciled(at, label)).toMatchObject(whole);
    });
  },
);
