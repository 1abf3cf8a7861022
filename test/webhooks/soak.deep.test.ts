/**
 * Tests that all events arrive although a fifth of all calls fails, either before or after the call takes effect: 28 events in the gate, and
 * more than ten thousand before a release. They go through the simulated webhook pipeline (delivery-pipeline.ts).
 */
import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import { type ApiContext, contextOn, type EventContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { Exchange, Post } from "#shared/outbound/post.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { consume as consumeBatch } from "#shared/webhooks/deliver/consume.ts";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import type { RowChange } from "#shared/webhooks/events/row-events.ts";
import { readLimiter } from "#shared/webhooks/limiter/limiter.ts";
import { sweep } from "#shared/webhooks/reconcile/sweep.ts";
import type { NewRegistration } from "#shared/webhooks/subscriptions/schema.ts";
import { openedSecrets } from "#shared/webhooks/subscriptions/secret.ts";
import { readWebhook } from "#shared/webhooks/subscriptions/webhooks.ts";
import { randomSequence } from "../../infra/local/demo/random.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { calledBy, Killed, unlessKilled, untilDone } from "../harness/killable.ts";
import { sized } from "../harness/tier.ts";
import { createRegistration, triggerAction } from "../harness/verbs.ts";
import {
  automatic,
  createdProspect,
  deliveries,
  newPipeline,
  type Pipeline,
  reconcileNow,
  START,
} from "./delivery-pipeline.ts";

const db = faultyDynamoDb();
const PROSPECTS = 100;
/** Number of prospects that match a registration without a delay. All prospects match two registrations with a delay. */
const AT_ONCE_PROSPECTS = 20;
const MINUTE = 60_000;
const VISIBILITY_MS = 90_000;
/** Number of messages that are processed concurrently. */
const AT_ONCE = 8;
/** Number of changes after which a user triggers one event manually. */
const TRIGGER_EVERY = 20;
const BATCH = 25;

/**
 * The probability of each planned fault: a call fails, the receiver answers 500, or a batch is published again. Half of the failing calls
 * take effect. A message is processed again with half of this probability.
 */
const FAULTS = 0.2;

interface Outcome {
  /** Number of events to deliver: matches of registrations, and manual triggers. */
  readonly events: number;
  readonly calls: number;
  readonly failed: number;
  readonly deliveries: number;
  readonly posts: number;
  readonly lost: number;
  readonly falsified: number;
  /** Number of successful posts that repeat an earlier successful post of the same delivery. */
  readonly duplicates: number;
  /** Number of deliveries with more repeated posts than the planned faults explain. It must be 0. */
  readonly unforced: number;
  readonly faults: readonly string[];
  readonly matched: number;
}

interface Registered {
  readonly atOnce: number;
  readonly delayed: readonly number[];
  readonly button: number;
}

interface Stage {
  readonly changes: number;
  readonly at: Pipeline;
  readonly context: EventContext;
  readonly registered: Registered;
  readonly secret: string;
  readonly random: () => number;
  readonly count: { calls: number; failed: number };
  /**
   * Counts for each delivery how often its sender failed after the receiver had accepted the post. Each of these failures may cause one
   * repeated post.
   */
  readonly cutOff: Map<string, number>;
  readonly triggers: Map<string, number>;
  readonly received: Post[];
}

const range = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first + i);

async function register(context: ApiContext, at: Pipeline, given: Partial<NewRegistration>): Promise<number> {
  const registration = { ...automatic("prospect.updated"), ...given };
  return (await createRegistration(context, at.companyId, at.webhookId, registration)).id;
}

async function newStage(changes: number): Promise<Stage> {
  // The registration that `newPipeline` creates must match no event of this test.
  const at = await newPipeline(db, "prospect.deleted");
  const plain = contextOn(db.direct, { now: () => START });
  const registered: Registered = {
    atOnce: await register(plain, at, { filter: { "prospect.id": range(1, AT_ONCE_PROSPECTS) } }),
    delayed: [await register(plain, at, { delayMinutes: 10 }), await register(plain, at, { delayMinutes: 30 })],
    button: await register(plain, at, { triggerMode: "manual" }),
  };
  const { webhook } = await readWebhook(plain, at.companyId, at.webhookId);
  const { secretKey: secret } = await openedSecrets(plain.secrets, webhook);
  const prospects = Array.from({ length: PROSPECTS }, (_, i) => createdProspect(at.companyId, i + 1));
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
  const received: Post[] = [];
  const context: EventContext = {
    ...at.context,
    table: calledBy(call, db.direct),
    // The sweeper, which replaces lost messages, also sends messages for deliveries of other tests. This test cannot process those
    // messages, so its queue drops them.
    queue: {
      ...at.context.queue,
      send: (entries) =>
        call(() => at.context.queue.send(entries.filter(({ message }) => message.companyId === at.companyId))),
    },
    post: (post) => call(() => receive(post)),
  };
  async function receive(post: Post): Promise<Exchange> {
    const status = random() < FAULTS ? 500 : 200;
    if (status === 200) received.push(post);
    return { status, error: null, answer: "", retryAfter: undefined, latencyMs: 1 };
  }
  const kept = { count, cutOff: new Map<string, number>(), triggers: new Map<string, number>(), received };
  return { changes, at, context, registered, secret, random, ...kept };
}

/** Returns change number `n`. It comes one second after the previous change. Successive changes are of different prospects. */
function changeOf({ companyId }: Pipeline, n: number): RowChange & { readonly id: number; readonly version: number } {
  const id = (n % PROSPECTS) + 1;
  const version = Math.floor(n / PROSPECTS) + 2;
  const row = (of: number) => ({
    ...createdProspect(companyId, id),
    name: `name ${of}`,
    updatedAt: iso(START + n * 1_000),
    version: of,
  });
  return { id, version, before: prospectItem(row(version - 1)), after: prospectItem(row(version)) };
}

async function run(stage: Stage): Promise<void> {
  const { at, changes, random } = stage;
  for (let first = 0; first < changes; first += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, changes - first) }, (_, i) => changeOf(at, first + i));
    at.clock = Math.max(at.clock, START + (first + BATCH) * 1_000);
    await publishBatch(stage, batch);
    // Lambda may repeat a batch that was already processed. After a failure, it may repeat only the end of a batch.
    if (random() < FAULTS) await publishBatch(stage, batch);
    if (random() < FAULTS) await publishBatch(stage, batch.slice(Math.floor(random() * BATCH)));
    for (let n = first; n < first + batch.length; n += 1) if (n % TRIGGER_EVERY === 0) await trigger(stage, n);
    await consumeUntil(stage, at.clock);
    if (first % (4 * BATCH) === 0) await sweepOnce(stage);
    // In the middle of the test, the queue loses all its messages once.
    if (first === BATCH * Math.floor(changes / BATCH / 2)) {
      at.queue.length = 0;
      await sweep({ ...stage.context, table: at.db.direct }, { assume: "messages-lost" }).catch(() => undefined);
    }
  }
  for (let hours = 0; hours < 400 && (await isWaiting(stage)); hours++) {
    await consumeUntil(stage, at.clock + 60 * MINUTE);
    await sweepOnce(stage);
  }
}

/**
 * Publishes a batch as the publish function does: first all changes together. After a fault, it publishes the changes that are left one
 * after the other.
 */
async function publishBatch({ context }: Stage, batch: readonly RowChange[]): Promise<void> {
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

/**
 * Triggers an event manually, and repeats the request until it is answered. Within ten seconds the service treats a repeated request as
 * the same trigger.
 */
async function trigger(stage: Stage, n: number): Promise<void> {
  const { at, context, registered } = stage;
  const api = contextOn(context.table, { now: () => at.clock });
  const id = (n % PROSPECTS) + 1;
  const { deliveryId } = await untilDone(() => triggerAction(api, context, at.caller, id, registered.button));
  expect(stage.triggers.has(deliveryId)).toBe(false);
  stage.triggers.set(deliveryId, id);
  at.clock += 10_000;
}

/** Runs the sweeper, which replaces lost messages. A planned fault is ignored, because the next run continues the work. */
async function sweepOnce({ context }: Stage): Promise<void> {
  await sweep(context, { assume: "messages-kept" }).catch(unlessKilled);
}

/**
 * Processes the messages that become visible until this time, several at the same time. Failed messages return to the queue, and some
 * messages are processed twice.
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
 * Processes several messages in one call. Counts, in `cutOff`, the deliveries that the receiver accepted although the processing of their
 * message then failed, because only these may be sent again. A message without a `deliveryId` may send many deliveries of a backlog, so if
 * it fails, all deliveries posted in this call count.
 */
async function take(stage: Stage, entries: Pipeline["queue"]): Promise<void> {
  const { at, context, cutOff, received } = stage;
  const timesReceived = (id: string) => received.filter((post) => idOf(post) === id).length;
  const before = new Map<string, number>();
  const post = (sent: Post) => {
    const id = idOf(sent);
    before.set(id, before.get(id) ?? timesReceived(id));
    return context.post(sent);
  };
  const ends = await consumeBatch({ ...context, post }, entries);
  const failed = entries.filter((_, i) => ends[i]?.status === "rejected");
  for (const end of ends) if (end.status === "rejected") unlessKilled(end.reason);
  const isOf = (id: string) => failed.some(({ message }) => !("deliveryId" in message) || message.deliveryId === id);
  for (const [id, times] of before) {
    if (isOf(id) && timesReceived(id) > times) cutOff.set(id, (cutOff.get(id) ?? 0) + 1);
  }
  for (const { message } of failed) at.queue.push({ message, at: at.clock + VISIBILITY_MS, isRepeat: true });
}

/**
 * Returns true if work is left: a message, a waiting delivery, or a backlog that is still marked as open. A backlog can be open although it
 * is empty: if a fault loses the message of its last step, only a later run of the sweeper closes the backlog.
 */
async function isWaiting({ at }: Stage): Promise<boolean> {
  if (at.queue.length > 0 || (await deliveries(at)).some(({ state }) => state === "waiting")) return true;
  return (await readLimiter({ table: at.db.direct }, at)).dueAt !== undefined;
}

const OfProspect = z.object({ prospect: z.object({ id: z.int(), name: z.string() }) });
const Body = z.object({
  id: z.string(),
  registrationId: z.int(),
  trigger: z.enum(["automatic", "manual"]),
  eventCount: z.int(),
  data: OfProspect,
  events: z.optional(z.array(z.object({ id: z.string(), data: OfProspect }))),
});

/** Compares the received events with the changes. Returns the counts and the differences. */
async function outcomeOf(stage: Stage): Promise<Outcome> {
  const { at, changes, received, registered, triggers, count, cutOff } = stage;
  const arrived = new Map<string, string[]>();
  const bodies = new Map<string, string>();
  let falsified = 0;
  for (const post of received) {
    const id = idOf(post);
    if (!isSigned(stage, post) || (bodies.get(id) ?? post.body) !== post.body) falsified++;
    if (bodies.has(id)) continue;
    bodies.set(id, post.body);
    for (const entry of eventsIn(z.parse(Body, JSON.parse(post.body))))
      arrived.set(entry, [...(arrived.get(entry) ?? []), id]);
  }
  const expected = new Set<string>();
  for (let n = 0; n < changes; n++) {
    const { id, version } = changeOf(at, n);
    const wanting = id <= AT_ONCE_PROSPECTS ? [registered.atOnce, ...registered.delayed] : registered.delayed;
    for (const registration of wanting) expected.add(`${registration} ${id} name ${version}`);
  }
  for (const id of triggers.keys()) expected.add(`${registered.button} ${id}`);
  const rows = await deliveries(at);
  const extra = [...arrived].filter(([entry, ids]) => !expected.has(entry) || ids.length > 1).length;
  const again = [...Map.groupBy(received, idOf)].map(([id, posts]) => ({ id, times: posts.length - 1 }));
  const unforced = again.filter(({ id, times }) => times > (cutOff.get(id) ?? 0)).length;
  const { faults, matched } = await reconcileNow(at);
  return {
    faults,
    matched,
    events: expected.size,
    ...count,
    deliveries: rows.length,
    posts: received.length,
    lost:
      [...expected].filter((entry) => !arrived.has(entry)).length +
      rows.filter(({ state }) => state !== "delivered").length,
    falsified: falsified + extra + (rows.length - bodies.size),
    duplicates: again.reduce((sum, { times }) => sum + times, 0),
    unforced,
  };
}

const idOf = ({ headers }: Post): string => headers["X-Service-Delivery"] ?? "";

function isSigned({ secret }: Stage, { body, headers }: Post): boolean {
  return headers["X-Service-Signature"] === createHmac("sha256", secret).update(body).digest("hex");
}

/**
 * Returns a text for each event of a body, by which the test recognises the event. The text consists of the registration's id and the
 * prospect's id and name. For a manual trigger, it consists of the ids of the registration and of the delivery. If the body contradicts
 * itself, the function returns only one text, which says this.
 */
function eventsIn({ id, registrationId, trigger, events, data, eventCount }: z.infer<typeof Body>): string[] {
  if (trigger === "manual") return [`${registrationId} ${id}`];
  const all = events?.map((event) => event.data) ?? [data];
  if (all.length !== eventCount || JSON.stringify(all.at(-1)) !== JSON.stringify(data)) return [`${id} is not whole`];
  return all.map(({ prospect }) => `${registrationId} ${prospect.id} ${prospect.name}`);
}

/** Time limit of the test in milliseconds. It makes thousands of calls to the table, which can take minutes on a busy machine. */
const LONG_MS = 3_600_000;

test("with faults in a fifth of all calls no event is lost or falsified, and only a post without a recorded result is repeated", {
  tags: "sized",
  timeout: LONG_MS,
}, async () => {
  const { changes, events } = sized({ short: { changes: 9, events: 28 }, wide: { changes: 5_000, events: 11_250 } });
  const stage = await newStage(changes);
  await run(stage);
  const outcome = await outcomeOf(stage);
  expect(outcome).toMatchObject({ events, lost: 0, falsified: 0, unforced: 0, faults: [] });
  expect(outcome.matched).toBe(outcome.deliveries);
  expect(outcome.failed / outcome.calls).toBeGreaterThan(sized({ short: 0.15, wide: 0.19 }));
  expect(outcome.duplicates).toBeGreaterThan(0);
});
