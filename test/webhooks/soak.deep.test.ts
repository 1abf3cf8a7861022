/**
 * Tests that all events arrive although a fifth of all calls fails, either before or after the call takes effect: 28 events in
 * `npm run test:gate`, and more than ten thousand before a release.
 */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import { contextOn, type EventContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { Post } from "#shared/outbound/post.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { consume as consumeBatch } from "#shared/webhooks/deliver/consume.ts";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import type { RowChange } from "#shared/webhooks/events/row-events.ts";
import { readLimiter } from "#shared/webhooks/limiter/limiter.ts";
import { sweep } from "#shared/webhooks/reconcile/sweep.ts";
import type { NewRegistration } from "#shared/webhooks/subscriptions/schema.ts";
import { randomSequence } from "../../infra/local/demo/random.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { calledBy, Killed, unlessKilled, untilDone } from "../harness/killable.ts";
import { sized } from "../harness/tier.ts";
import { createRegistration, triggerAction } from "../harness/verbs.ts";
import { automatic, createdProspect, START } from "./fixtures.ts";
import { newPipeline, type Pipeline } from "./pipeline.ts";
import { deliveries, expectReconciled } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const PROSPECTS = 100;
/** Number of prospects that match the registration without a delay. All prospects match the two registrations with a delay. */
const AT_ONCE_PROSPECTS = 20;
const MINUTE = 60_000;
const VISIBILITY_MS = 90_000;
/** Number of messages that are processed concurrently. */
const AT_ONCE = 8;
/** Number of changes after which a user triggers one event manually. */
const TRIGGER_EVERY = 20;
const BATCH = 25;
/**
 * The probability with which a call fails, the receiver answers 500, or a batch is published again. Half of the failing calls take effect.
 */
const FAULTS = 0.2;

const range = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first + i);
const idOf = ({ headers }: Post): string => headers["X-Service-Delivery"] ?? "";

async function newStage(changes: number) {
  // The registration that `newPipeline` creates must match no event of this test.
  const at = await newPipeline(db, "prospect.deleted");
  const plain = contextOn(db.direct, { now: () => START });
  const register = async (given: Partial<NewRegistration>): Promise<number> => {
    const registration = { ...automatic("prospect.updated"), ...given };
    return (await createRegistration(plain, at.companyId, at.webhookId, registration)).id;
  };
  const atOnce = await register({ filter: { "prospect.id": range(1, AT_ONCE_PROSPECTS) } });
  const delayed = [await register({ delayMinutes: 10 }), await register({ delayMinutes: 30 })];
  const button = await register({ triggerMode: "manual" });
  const prospects = range(1, PROSPECTS).map((id) => createdProspect(at.companyId, id));
  await db.direct.batchPut(prospects.map((row) => ({ ...keys.prospect(at.companyId, row.id), ...prospectItem(row) })));
  // The sequence is the same in each run, so that a failure can be repeated.
  const random = randomSequence(7);
  const count = { calls: 0, failed: 0 };
  async function call<T>(work: () => Promise<T>): Promise<T> {
    count.calls++;
    const dice = random();
    if (dice < FAULTS) count.failed++;
    if (dice < FAULTS / 2) throw new Killed();
    const result = await work();
    if (dice < FAULTS) throw new Killed();
    return result;
  }
  /** The posts that the receiver has answered with 200. */
  const received: Post[] = [];
  const context: EventContext = {
    ...at.context,
    table: calledBy(call, db.direct),
    queue: { ...at.context.queue, send: (entries) => call(() => at.context.queue.send(entries)) },
    post: (post) =>
      call(async () => {
        const status = random() < FAULTS ? 500 : 200;
        if (status === 200) received.push(post);
        return { status, error: null, answer: "", retryAfter: undefined, latencyMs: 1 };
      }),
  };
  /** For each delivery, how often its sender failed after the receiver had accepted the post. Each time may cause one repeated post. */
  const cutOff = new Map<string, number>();
  const triggered = new Set<string>();
  return { at, changes, context, atOnce, delayed, button, random, count, received, cutOff, triggered };
}
type Stage = Awaited<ReturnType<typeof newStage>>;

/** Returns change number `n`. It comes one second after the previous change. Successive changes are of different prospects. */
function changeOf({ companyId }: Pipeline, n: number): RowChange & { readonly id: number; readonly version: number } {
  const id = (n % PROSPECTS) + 1;
  const version = Math.floor(n / PROSPECTS) + 2;
  const updatedAt = iso(START + n * 1_000);
  const row = (of: number) => ({ ...createdProspect(companyId, id), name: `name ${of}`, updatedAt, version: of });
  return { id, version, before: prospectItem(row(version - 1)), after: prospectItem(row(version)) };
}

async function run(stage: Stage): Promise<void> {
  const { at, context, changes, random } = stage;
  for (let first = 0; first < changes; first += BATCH) {
    const numbers = range(first, Math.min(BATCH, changes - first));
    const batch = numbers.map((n) => changeOf(at, n));
    at.clock = Math.max(at.clock, START + (first + BATCH) * 1_000);
    await publishBatch(context, batch);
    // Lambda may repeat a batch that was already processed. After a failure, it may repeat only the end of a batch.
    if (random() < FAULTS) await publishBatch(context, batch);
    if (random() < FAULTS) await publishBatch(context, batch.slice(Math.floor(random() * BATCH)));
    for (const n of numbers) if (n % TRIGGER_EVERY === 0) await trigger(stage, n);
    await consumeUntil(stage, at.clock);
    if (first % (4 * BATCH) === 0) await sweep(context, { assume: "messages-kept" }).catch(unlessKilled);
    // In the middle of the test, the queue loses all its messages once.
    if (first === BATCH * Math.floor(changes / BATCH / 2)) {
      at.queue.length = 0;
      await sweep({ ...context, table: db.direct }, { assume: "messages-lost" }).catch(unlessKilled);
    }
  }
  for (let hours = 0; hours < 400 && (await isWaiting(at)); hours++) {
    await consumeUntil(stage, at.clock + 60 * MINUTE);
    await sweep(context, { assume: "messages-kept" }).catch(unlessKilled);
  }
}

/** Publishes a batch as the publisher does: first all changes together and, after a fault, one after the other. */
async function publishBatch(context: EventContext, batch: readonly RowChange[]): Promise<void> {
  let left = [...batch];
  await untilDone(async () => {
    const reads = batchReads(context);
    try {
      await publishChanges(context, reads, left);
      left = [];
    } catch (error) {
      unlessKilled(error);
    }
    for (let next = left[0]; next !== undefined; next = left[0]) {
      await publishChanges(context, reads, [next]);
      left.shift();
    }
  });
}

async function trigger({ at, context, button, triggered }: Stage, n: number): Promise<void> {
  const api = contextOn(context.table, { now: () => at.clock });
  const { deliveryId } = await untilDone(() => triggerAction(api, context, at.caller, (n % PROSPECTS) + 1, button));
  expect(triggered.has(deliveryId)).toBe(false);
  triggered.add(deliveryId);
  // Within ten seconds, the service treats a repeated request as the same trigger, so the clock advances.
  at.clock += 10_000;
}

/**
 * Processes the messages that become visible until this time. Failed messages return to the queue, and some messages are processed twice.
 */
async function consumeUntil(stage: Stage, untilMs: number): Promise<void> {
  const { at, random } = stage;
  for (;;) {
    at.queue.sort((a, b) => a.at - b.at);
    const next = at.queue[0];
    if (next === undefined || next.at > untilMs) break;
    at.clock = Math.max(at.clock, next.at);
    const due = at.queue.findIndex((entry) => entry.at > at.clock);
    const taken = at.queue.splice(0, Math.min(AT_ONCE, due === -1 ? at.queue.length : due));
    for (const entry of taken) if (random() < FAULTS / 2) at.queue.push({ ...entry });
    await take(stage, taken);
  }
  at.clock = Math.max(at.clock, untilMs);
}

/**
 * Processes several messages in one call, and counts in `cutOff` the deliveries that the receiver accepted although the processing of their
 * message failed. A message without a `deliveryId` sends many deliveries of a backlog, so if it fails, all deliveries of the call count.
 */
async function take({ at, context, cutOff, received }: Stage, entries: Pipeline["queue"]): Promise<void> {
  const from = received.length;
  const ends = await consumeBatch(context, entries);
  for (const end of ends) if (end.status === "rejected") unlessKilled(end.reason);
  const failed = entries.filter((_, i) => ends[i]?.status === "rejected");
  const isOf = (id: string) => failed.some(({ message }) => !("deliveryId" in message) || message.deliveryId === id);
  for (const id of new Set(received.slice(from).map(idOf))) if (isOf(id)) cutOff.set(id, (cutOff.get(id) ?? 0) + 1);
  for (const { message } of failed) at.queue.push({ message, at: at.clock + VISIBILITY_MS, isRepeat: true });
}

/** True while work is left. If a fault loses the message of a backlog's last step, only a later run of the sweeper closes the backlog. */
async function isWaiting(at: Pipeline): Promise<boolean> {
  if (at.queue.length > 0 || (await deliveries(at)).some(({ state }) => state === "waiting")) return true;
  return (await readLimiter({ table: db.direct }, at)).dueAt !== undefined;
}

const OfProspect = z.object({ prospect: z.object({ id: z.int(), name: z.string() }) });
const Body = z.object({
  id: z.string(),
  registrationId: z.int(),
  trigger: z.enum(["automatic", "manual"]),
  data: OfProspect,
  events: z.optional(z.array(z.object({ data: OfProspect }))),
});

/** Returns a text for each event of a body: the registration, and the prospect with its name, or the delivery of a manual trigger. */
function eventsIn({ id, registrationId, trigger, events, data }: z.infer<typeof Body>): string[] {
  if (trigger === "manual") return [`${registrationId} ${id}`];
  const all = events?.map((event) => event.data) ?? [data];
  return all.map(({ prospect }) => `${registrationId} ${prospect.id} ${prospect.name}`);
}

function expectedEvents({ at, changes, atOnce, delayed, button, triggered }: Stage): string[] {
  const changed = range(0, changes).flatMap((n) => {
    const { id, version } = changeOf(at, n);
    const wanting = id <= AT_ONCE_PROSPECTS ? [atOnce, ...delayed] : delayed;
    return wanting.map((registration) => `${registration} ${id} name ${version}`);
  });
  return [...changed, ...Array.from(triggered, (id) => `${button} ${id}`)];
}

test("with faults in a fifth of all calls no event is lost or falsified, and only a post without a recorded result is repeated", {
  tags: "sized",
  // Thousands of calls to the table can take minutes on a busy machine.
  timeout: 3_600_000,
}, async () => {
  const { changes, events } = sized({ short: { changes: 9, events: 28 }, wide: { changes: 5_000, events: 11_250 } });
  const stage = await newStage(changes);
  await run(stage);
  const { at, received, count, cutOff } = stage;
  const posts = Map.groupBy(received, idOf);
  const bodies = [...posts.values()].flatMap((same) => [...new Set(same.map(({ body }) => body))]);
  const arrived = bodies.flatMap((body) => eventsIn(Body.parse(JSON.parse(body))));
  expect(arrived.toSorted()).toEqual(expectedEvents(stage).toSorted());
  expect(arrived).toHaveLength(events);
  const rows = await deliveries(at);
  expect(new Set(rows.map(({ state }) => state))).toEqual(new Set(["delivered"]));
  expect([rows.length, bodies.length]).toEqual([posts.size, posts.size]);
  const unforced = [...posts].filter(([id, { length }]) => length - 1 > (cutOff.get(id) ?? 0));
  expect(unforced).toEqual([]);
  expect(await expectReconciled(at)).toMatchObject({ matched: rows.length });
  expect(count.failed / count.calls).toBeGreaterThan(sized({ short: 0.15, wide: 0.19 }));
  expect(received.length).toBeGreaterThan(posts.size);
});
