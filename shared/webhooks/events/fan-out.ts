/**
 * Handles fan-outs. The publisher stores the matches of a fan-out in one row, and consumers of the delivery queue create the deliveries in
 * parts and at a limited rate. A company has one lease for these, and one for the events of its bulk jobs.
 */
import { createHash, randomUUID } from "node:crypto";
import * as z from "zod/mini";
import { bothEnded } from "#shared/all-ended.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import { absent, any, atMost, type Change, type Condition, equals, missing, present } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import type { Table } from "#shared/db/table.ts";
import { expectedKeys, type FanOutLane, fanOutKeys } from "#shared/db/webhook-keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { Bytes, Id, Timestamp } from "#shared/schema.ts";
import type { DomainEvent } from "#shared/webhooks/catalogue.ts";
import { eventDataExpiry, keepEventData } from "#shared/webhooks/event-data.ts";
import { emit } from "#shared/webhooks/events/emit.ts";
import type { Match, PublishedEvent, Subscriber } from "#shared/webhooks/events/matching.ts";
import { ExpectedFanOut } from "#shared/webhooks/expected-deliveries.ts";
import { type FanOutMessage, fanOutMessage } from "#shared/webhooks/messages.ts";

/** The matches at the time of publication: webhook id, registration id, delay in minutes, and time of the delay's last change. */
const Matches = z.array(z.tuple([Id, Id, z.int(), z.nullable(Timestamp)]));

/** Events of a bulk job that are stored together. `data` is JSON text, or null if it has a separate row. */
const BulkEvents = z.array(
  z.object({
    id: z.string(),
    event: z.string(),
    recordId: Id,
    version: z.int(),
    createdAt: Timestamp,
    bytes: z.int(),
    data: z.nullable(z.string()),
    matches: Matches,
  }),
);

/** The row is deleted when all deliveries are created, so it needs no expiry. */
export const StoredFanOut = z.object({
  type: z.literal("fanOut"),
  companyId: Id,
  isBulk: z.optional(z.literal(true)),
  /** The id of the event, or `bulk-` and a digest of the ids of several events. */
  eventId: z.string(),
  event: z.string(),
  recordId: Id,
  version: z.int(),
  createdAt: Timestamp,
  /** Bytes of the event's data. If the row has several events, the bytes of the largest data. */
  bytes: z.int(),
  count: z.int(),
  /** The compressed matches of the event. Absent if the row has several events. */
  matches: z.optional(Bytes),
  /** The compressed events of a bulk job with their matches. Absent if the row has a single event. */
  bulkEvents: z.optional(Bytes),
  dueShard: z.string(),
  dueAt: Timestamp,
});
export type StoredFanOut = z.infer<typeof StoredFanOut>;

/** A company's lease for creating the deliveries of its fan-outs (events with many matches), and the progress of this work. */
export const StoredProgress = z.object({
  type: z.literal("fanOutProgress"),
  companyId: Id,
  owner: z.optional(z.string()),
  /** While a function holds the lease, the end of the lease. Otherwise the time before which no function may take the lease. */
  until: z.optional(Timestamp),
  /** The sort key of the fan-out whose deliveries are being created. */
  fanOut: z.optional(z.string()),
  /** Number of deliveries that have been created for this fan-out. */
  made: z._default(z.int(), 0),
  movedAt: z.optional(Timestamp),
});
type StoredProgress = z.infer<typeof StoredProgress>;

/** Stores the matches of an event. Returns false if all its deliveries were already created. A repeated event keeps its first matches. */
export async function startFanOut(
  { table, clock }: EventContext,
  event: DomainEvent,
  subscribers: readonly Subscriber[],
): Promise<boolean> {
  const { id: eventId, companyId, isBulk, createdAt, recordId, version, data } = event;
  const now = clock.now();
  const count = subscribers.length;
  // If a crash prevents the second write, reconciliation finds an entry without its row.
  const [bytes, isDone] = await bothEnded(
    keepEventData(table, event, JSON.stringify(data), now),
    expectFanOut(table, { companyId, eventId, createdAt, count }, now),
  );
  if (isDone) return false;
  const row: StoredFanOut = {
    type: "fanOut",
    companyId,
    ...(isBulk && { isBulk }),
    eventId,
    event: event.event,
    recordId,
    version,
    createdAt,
    bytes,
    count,
    matches: packed(subscribers.map(matchOf)),
    dueShard: keys.dueShard(`fan-out-${eventId}`),
    dueAt: iso(now),
  };
  await putIfAbsent(table, { ...keyOf(row), ...row });
  return true;
}

/** Returns true if all deliveries of the fan-out were already created. */
async function expectFanOut(
  table: Table,
  fanOut: Pick<StoredFanOut, "companyId" | "eventId" | "createdAt" | "count">,
  now: number,
): Promise<boolean> {
  const { companyId, eventId, createdAt } = fanOut;
  const key = expectedKeys.fanOut(companyId, createdAt.slice(0, 10), eventId);
  const expiresAt = eventDataExpiry(createdAt, now);
  const existing = await putIfAbsent(table, { ...key, type: "fanOut", ...fanOut, expiresAt });
  return existing !== undefined && ExpectedFanOut.parse(existing).doneAt !== undefined;
}

type StoredMatch = z.infer<typeof Matches>[number];

const matchOf = ({ webhookId, id, delayMinutes, delayChangedAt }: Subscriber): StoredMatch => [
  webhookId,
  id,
  delayMinutes,
  delayChangedAt ?? null,
];

export interface BulkEvent {
  readonly event: PublishedEvent;
  readonly subscribers: readonly Subscriber[];
}

/** Maximum bytes of the events in one row, before compression. DynamoDB allows 400 KB for a row. */
const BULK_BYTES = 250_000;
/** Upper bounds in bytes for a match, and for an event without its data and matches. */
const MATCH_BYTES = 60;
const EVENT_BYTES = 300;

/**
 * Stores events of one company's bulk jobs, many in a row. Returns true if deliveries are left to create. A row's id is made from the ids
 * of its events. Repeated events may be in two rows, but the ids of their deliveries make no second delivery.
 */
export async function startBulkFanOuts(
  { table, clock }: EventContext,
  companyId: number,
  events: readonly BulkEvent[],
): Promise<boolean> {
  let isLeft = false;
  for (const group of groupsOf(events)) {
    const now = clock.now();
    const row = bulkRow(companyId, group, iso(now));
    const { eventId, createdAt, count } = row;
    if (await expectFanOut(table, { companyId, eventId, createdAt, count }, now)) continue;
    await putIfAbsent(table, { ...keyOf(row), ...row });
    isLeft = true;
  }
  return isLeft;
}

function groupsOf(events: readonly BulkEvent[]): BulkEvent[][] {
  const groups: BulkEvent[][] = [];
  let room = 0;
  for (const one of events) {
    const bytes = EVENT_BYTES + (one.event.data.text?.length ?? 0) * 3 + one.subscribers.length * MATCH_BYTES;
    if (bytes > room || groups.length === 0) {
      groups.push([]);
      room = BULK_BYTES;
    }
    groups.at(-1)?.push(one);
    room -= bytes;
  }
  return groups;
}

function bulkRow(companyId: number, group: readonly BulkEvent[], now: string): StoredFanOut {
  const [first] = group;
  if (first === undefined) throw new Error("a fan-out needs an event");
  const { event, recordId, version, createdAt } = first.event;
  const ids = group.map(({ event: { id } }) => id).join("\n");
  const eventId = `bulk-${createHash("sha256").update(ids).digest("hex").slice(0, 32)}`;
  return {
    type: "fanOut",
    companyId,
    isBulk: true,
    eventId,
    event,
    recordId,
    version,
    createdAt,
    bytes: Math.max(...group.map((one) => one.event.data.bytes)),
    count: group.reduce((sum, { subscribers }) => sum + subscribers.length, 0),
    bulkEvents: packed(group.map(storedEvent)),
    dueShard: keys.dueShard(`fan-out-${eventId}`),
    dueAt: now,
  };
}

const storedEvent = ({ event, subscribers }: BulkEvent): z.infer<typeof BulkEvents>[number] => {
  const { id, event: name, recordId, version, createdAt, data } = event;
  const about = { id, event: name, recordId, version, createdAt };
  return { ...about, bytes: data.bytes, data: data.text ?? null, matches: subscribers.map(matchOf) };
};

async function putIfAbsent(table: Table, put: Key & Item): Promise<Item | undefined> {
  try {
    await table.write({ put, when: absent });
    return undefined;
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    return error.failed[0]?.item;
  }
}

const PART = 100;
/**
 * Limits for one queue message, so that a large event does not occupy a function for long: deliveries, bytes of their data, and the
 * milliseconds after which no further part is begun.
 */
export const MATCHES_PER_MESSAGE = 500;
export const BYTES_PER_MESSAGE = 16_000_000;
const START_WITHIN_MS = 1_000;
/** The pause between two messages of a company. Deliveries are therefore not created faster than they are sent. */
const PAUSE_SECONDS = 1;
/** Tolerated difference between the clocks of functions. */
const EARLY_MS = 100;
/** Longer than the time-out of a function, so the owner of an expired lease has ended its work. */
const LEASE_MS = 20_000;

/**
 * Creates the next deliveries of the company's fan-outs, and queues another message if some are left. Does nothing while another function
 * holds the lease, or during the pause between two messages.
 */
export async function expand(context: EventContext, { companyId, isBulk }: FanOutMessage): Promise<void> {
  const lane: FanOutLane = { companyId, isBulk };
  const lease = await acquire(context, lane);
  if (lease === undefined) return;
  const release = (change: Change) => update(context.table, lane, change, equals("owner", lease.owner));
  const free: Change = { remove: ["owner", "until"] };
  let isLeft: boolean;
  try {
    isLeft = await makeDeliveries(context, lease);
  } catch (error) {
    // Free the lease: the queue delivers the failed message again soon, and its handling needs the lease.
    await release(free).catch(() => undefined);
    throw error;
  }
  const until = iso(context.clock.now() + PAUSE_SECONDS * 1_000 - EARLY_MS);
  if ((await release(isLeft ? { set: { until }, remove: ["owner"] } : free)) === undefined) return;
  // The message of a fan-out that was added while this function held the lease did nothing. Look for it after the release.
  if (!isLeft && (await oldestFanOut(context.table, lane)) === undefined) return;
  await context.queue.send([{ message: fanOutMessage(lane), delaySeconds: isLeft ? PAUSE_SECONDS : 0 }]);
}

interface Lease {
  readonly lane: FanOutLane;
  readonly owner: string;
  readonly progress: StoredProgress;
}

/** Returns undefined if another function holds the lease, or during the pause between two messages. */
async function acquire(context: EventContext, lane: FanOutLane): Promise<Lease | undefined> {
  const { companyId } = lane;
  const owner = randomUUID();
  const now = context.clock.now();
  const change = { set: { type: "fanOutProgress", companyId, owner, until: iso(now + LEASE_MS) } };
  const item = await update(context.table, lane, change, any(missing("until"), atMost("until", iso(now))));
  return item === undefined ? undefined : { lane, owner, progress: StoredProgress.parse(item) };
}

/** Returns true if there are deliveries left to create. */
async function makeDeliveries(context: EventContext, { lane, owner, progress }: Lease): Promise<boolean> {
  const { table, clock } = context;
  const startedAt = clock.now();
  // The unused share of the message's limits, from 1 to 0.
  let budget = 1;
  let { fanOut: current, made: done } = progress;
  for (;;) {
    const fanOut = await oldestFanOut(table, lane);
    if (fanOut === undefined) return false;
    const { sk } = keyOf(fanOut);
    const matches = matchesIn(fanOut);
    const weight = Math.min(1, Math.max(1 / MATCHES_PER_MESSAGE, fanOut.bytes / BYTES_PER_MESSAGE));
    if (current !== sk) [current, done] = [sk, 0];
    while (done < matches.length) {
      const room = Math.floor(budget / weight);
      if (room < 1 || clock.now() - startedAt >= START_WITHIN_MS) return true;
      const part = matches.slice(done, done + Math.min(PART, room));
      // The key contains the position of the part, so that a repeated part writes the same entry in the list of expected deliveries.
      await emit(context, part, `${fanOut.eventId}#${done}`);
      budget -= part.length * weight;
      done += part.length;
      const now = clock.now();
      const moved = { set: { fanOut: current, made: done, movedAt: iso(now), until: iso(now + LEASE_MS) } };
      // Another function has acquired the lease, and continues from the stored progress.
      if ((await update(table, lane, moved, equals("owner", owner))) === undefined) return false;
    }
    await finish(table, fanOut, iso(clock.now()));
  }
}

async function oldestFanOut(table: Table, lane: FanOutLane): Promise<StoredFanOut | undefined> {
  for await (const item of table.query({ ...fanOutKeys.waiting(lane), pageItems: 1 })) {
    return StoredFanOut.parse(item);
  }
  return undefined;
}

const keyOf = (fanOut: StoredFanOut): Key => fanOutKeys.fanOut(fanOut, fanOut.createdAt, fanOut.eventId);

/** Ignores a failed condition, because an earlier owner of the lease may have made the same change. */
async function finish(table: Table, fanOut: StoredFanOut, doneAt: string): Promise<void> {
  const { companyId, createdAt, eventId } = fanOut;
  const entry = expectedKeys.fanOut(companyId, createdAt.slice(0, 10), eventId);
  try {
    await table.transact([
      { remove: keyOf(fanOut), when: present },
      { update: entry, change: { set: { doneAt } } },
    ]);
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
  }
}

async function update(table: Table, lane: FanOutLane, change: Change, when: Condition): Promise<Item | undefined> {
  try {
    return await table.write({ update: fanOutKeys.progress(lane), change, when });
  } catch (error) {
    if (error instanceof ConditionFailed) return undefined;
    throw error;
  }
}

const subscriberOf =
  (companyId: number) =>
  ([webhookId, id, delayMinutes, delayChangedAt]: StoredMatch): Subscriber => ({
    companyId,
    webhookId,
    id,
    delayMinutes,
    ...(delayChangedAt !== null && { delayChangedAt }),
  });

function matchesIn(fanOut: StoredFanOut): Match[] {
  const { companyId, isBulk, bulkEvents, matches } = fanOut;
  const of = { companyId, ...(isBulk && { isBulk }) };
  if (bulkEvents !== undefined) {
    return unpacked(BulkEvents, bulkEvents).flatMap(({ matches: own, bytes, data, ...event }) => {
      const published: PublishedEvent = { ...event, ...of, data: { bytes, text: data ?? undefined } };
      return own.map(subscriberOf(companyId)).map((subscriber) => ({ event: published, subscriber }));
    });
  }
  const { eventId: id, event: name, recordId, version, createdAt, bytes } = fanOut;
  const event = { id, event: name, ...of, recordId, version, createdAt, data: { bytes, text: undefined } };
  const subscribers = matches === undefined ? [] : unpacked(Matches, matches);
  return subscribers.map(subscriberOf(companyId)).map((subscriber) => ({ event, subscriber }));
}
