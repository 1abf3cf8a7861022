/**
 * Handles fan-outs: events with many matches, and the events of bulk jobs. The publisher stores their matches in rows, and the deliverer
 * creates the deliveries in parts and at a limited rate. A company has two lanes of fan-outs, one for ordinary events and one for events of
 * bulk jobs. A lease allows only one function at a time to work on a lane.
 */
import { createHash } from "node:crypto";
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { type Held, whileHeld } from "#shared/db/lease.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import type { Table } from "#shared/db/table.ts";
import { type FanOutLane, fanOutKeys } from "#shared/db/webhook-keys.ts";
import { Bytes, Id, Timestamp } from "#shared/schema.ts";
import { emit } from "#shared/webhooks/events/emit.ts";
import type { Match, PublishedEvent, Subscriber } from "#shared/webhooks/events/matching.ts";
import { type FanOutMessage, fanOutMessage } from "#shared/webhooks/messages.ts";

/** The matches at the time of publication: webhook id, registration id, delay in minutes, and time of the delay's last change. */
const Matches = z.array(z.tuple([Id, Id, z.int(), z.nullable(Timestamp)]));

/** The events of a fan-out. `data` is JSON text, or null if it has a separate row. */
const FannedOut = z.array(
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

/** The row of a fan-out. It is deleted when all deliveries are created, so it needs no expiry. */
export const StoredFanOut = z.object({
  type: z.literal("fanOut"),
  companyId: Id,
  isBulk: z.optional(z.literal(true)),
  /** The id of the event, or a digest of the ids of several events. */
  eventId: z.string(),
  /** The time of the first event. */
  createdAt: Timestamp,
  count: z.int(),
  events: Bytes,
  dueShard: z.string(),
  dueAt: Timestamp,
});
export type StoredFanOut = z.infer<typeof StoredFanOut>;

/** The lease of a lane, and the progress of the work on its fan-outs. */
export const StoredProgress = z.object({
  type: z.literal("fanOutProgress"),
  companyId: Id,
  /** The end of the lease (see lease.ts). */
  until: z.optional(Timestamp),
  /** The sort key of the fan-out whose deliveries are being created. */
  fanOut: z.optional(z.string()),
  made: z._default(z.int(), 0),
  movedAt: z.optional(Timestamp),
});
type StoredProgress = z.infer<typeof StoredProgress>;

export interface MatchedEvent {
  readonly event: PublishedEvent;
  readonly subscribers: readonly Subscriber[];
}

/** Maximum bytes of the events in one row, before compression. DynamoDB allows 400 KB for a row. */
const ROW_BYTES = 250_000;
/** Upper bounds in bytes for a match, and for an event without its data and matches. */
const MATCH_BYTES = 60;
const EVENT_BYTES = 300;

/**
 * Stores the matches of events. A row has the matches of many events, and its id is made from their ids. If the row already exists, it
 * keeps its matches. A repeated event may be in two rows, but makes no second delivery, because the ids of its deliveries are the same.
 */
export async function startFanOuts(
  { table, clock }: EventContext,
  lane: FanOutLane,
  events: readonly MatchedEvent[],
): Promise<void> {
  const now = iso(clock.now());
  for (const group of groupsOf(events)) await table.insert([fanOutItem(lane, group, now)]);
}

function groupsOf(events: readonly MatchedEvent[]): MatchedEvent[][] {
  const groups: MatchedEvent[][] = [];
  let group: MatchedEvent[] = [];
  let room = 0;
  for (const one of events) {
    const { text = "" } = one.event.data;
    const bytes = EVENT_BYTES + text.length * 3 + one.subscribers.length * MATCH_BYTES;
    if (bytes > room || group.length === 0) {
      group = [];
      groups.push(group);
      room = ROW_BYTES;
    }
    group.push(one);
    room -= bytes;
  }
  return groups;
}

function fanOutItem({ companyId, isBulk }: FanOutLane, group: readonly MatchedEvent[], now: string) {
  const { id, createdAt } = at(group, 0).event;
  const ids = group.map(({ event }) => event.id).join("\n");
  const eventId = group.length === 1 ? id : createHash("sha256").update(ids).digest("hex").slice(0, 32);
  const row: StoredFanOut = {
    type: "fanOut",
    companyId,
    isBulk,
    eventId,
    createdAt,
    count: group.reduce((sum, { subscribers }) => sum + subscribers.length, 0),
    events: packed(group.map(stored)),
    dueShard: keys.dueShard(`fan-out-${eventId}`),
    dueAt: now,
  };
  return { ...keyOf(row), ...row };
}

function stored({ event, subscribers }: MatchedEvent): z.infer<typeof FannedOut>[number] {
  const { id, event: name, recordId, version, createdAt, data } = event;
  const matches = subscribers.map(({ webhookId, id: registrationId, delayMinutes, delayChangedAt = null }) => {
    const match: z.infer<typeof Matches>[number] = [webhookId, registrationId, delayMinutes, delayChangedAt];
    return match;
  });
  return { id, event: name, recordId, version, createdAt, bytes: data.bytes, data: data.text ?? null, matches };
}

function matchesIn({ companyId, isBulk, events }: StoredFanOut): Match[] {
  return unpacked(FannedOut, events).flatMap(({ matches, bytes, data, ...event }) => {
    const published: PublishedEvent = { ...event, companyId, isBulk, data: { bytes, text: data ?? undefined } };
    return matches.map(([webhookId, id, delayMinutes, delayChangedAt]) => ({
      event: published,
      subscriber: { companyId, webhookId, id, delayMinutes, delayChangedAt: delayChangedAt ?? undefined },
    }));
  });
}

const keyOf = (fanOut: StoredFanOut): Key => fanOutKeys.fanOut(fanOut, fanOut.createdAt, fanOut.eventId);

const PART = 100;
/** Limits of the work for one queue message: deliveries, bytes of their data, and milliseconds after which no further part begins. */
export const MATCHES_PER_MESSAGE = 500;
export const BYTES_PER_MESSAGE = 16_000_000;
const START_WITHIN_MS = 1_000;
/** The pause between two messages of a lane, so that deliveries are not created faster than they are sent. */
const PAUSE_SECONDS = 1;
/** The lease ends this many milliseconds before the next message arrives, because the clocks of functions differ. */
const EARLY_MS = 100;
/** Milliseconds of a lease. It is longer than the time-out of a function, so the owner of an expired lease has ended its work. */
const LEASE_MS = 20_000;

/** Creates deliveries, and queues another message if some are left. Does nothing while another function has the lease, or in the pause. */
export function expand(context: EventContext, { companyId, isBulk }: FanOutMessage): Promise<void> {
  const { table, clock, queue } = context;
  const lane: FanOutLane = { companyId, isBulk };
  const lease = { key: fanOutKeys.progress(lane), schema: StoredProgress, attribute: "until", ms: LEASE_MS };
  return whileHeld(context, lease, { set: { type: "fanOutProgress", companyId } }, async (held) => {
    const isLeft = await makeDeliveries(context, lane, held);
    if (isLeft) await held.release(clock.now() + PAUSE_SECONDS * 1_000 - EARLY_MS);
    else await held.end();
    // The message of a fan-out that was added under this lease has done nothing. So, after the release, look for a fan-out.
    if (!isLeft && (await oldestFanOut(table, lane)) === undefined) return;
    await queue.send([{ message: fanOutMessage(lane), delaySeconds: isLeft ? PAUSE_SECONDS : 0 }]);
  });
}

/** Returns true if there are deliveries left to create. */
async function makeDeliveries(context: EventContext, lane: FanOutLane, held: Held<StoredProgress>): Promise<boolean> {
  const { table, clock } = context;
  const startedAt = clock.now();
  // The unused share of the message's limits, from 1 to 0.
  let budget = 1;
  for (;;) {
    const fanOut = await oldestFanOut(table, lane);
    if (fanOut === undefined) return false;
    const { sk } = keyOf(fanOut);
    const matches = matchesIn(fanOut);
    const bytes = matches.reduce((most, { event }) => Math.max(most, event.data.bytes), 0);
    const weight = Math.min(1, Math.max(1 / MATCHES_PER_MESSAGE, bytes / BYTES_PER_MESSAGE));
    let done = held.row.fanOut === sk ? held.row.made : 0;
    while (done < matches.length) {
      const room = Math.floor(budget / weight);
      if (room < 1 || clock.now() - startedAt >= START_WITHIN_MS) return true;
      const part = matches.slice(done, done + Math.min(PART, room));
      // The key contains the position of the part, so that a repeated part writes the same entry in the list of expected deliveries.
      await emit(context, part, `${fanOut.eventId}#${done}`);
      budget -= part.length * weight;
      done += part.length;
      await held.renew({ set: { fanOut: sk, made: done, movedAt: iso(clock.now()) } });
    }
    await table.transact([{ remove: keyOf(fanOut) }]);
  }
}

async function oldestFanOut(table: Table, lane: FanOutLane): Promise<StoredFanOut | undefined> {
  for await (const item of table.query({ ...fanOutKeys.waiting(lane), pageItems: 1 })) {
    return StoredFanOut.parse(item);
  }
  return undefined;
}
