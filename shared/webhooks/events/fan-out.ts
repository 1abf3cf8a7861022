/**
 * Handles events that match many subscriptions (fan-outs). The publisher stores the matches of such an event in one row. Later, consumers
 * of the delivery queue create the deliveries in parts and at a limited rate. For each company, a lease ensures that only one function
 * does this at a time.
 */
import { randomUUID } from "node:crypto";
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
import { expectedKeys, fanOutKeys } from "#shared/db/webhook-keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { Bytes, Id, Timestamp } from "#shared/schema.ts";
import { eventDataExpiry, keepEventData } from "#shared/webhooks/event-data.ts";
import type { DomainEvent } from "#shared/webhooks/events/catalogue.ts";
import { emit } from "#shared/webhooks/events/emit.ts";
import type { PublishedEvent, Subscriber } from "#shared/webhooks/events/matching.ts";
import { ExpectedFanOut } from "#shared/webhooks/expected-deliveries.ts";
import { type FanOutMessage, fanOutMessage } from "#shared/webhooks/messages.ts";

/**
 * The matches at the time of publication. Each consists of the webhook id, the registration id, the delay in minutes, and the time at
 * which the delay was last changed.
 */
const Matches = z.array(z.tuple([Id, Id, z.int(), z.nullable(Timestamp)]));

/** The row of a fan-out. It is deleted when all deliveries are created, so it needs no expiry. */
export const StoredFanOut = z.object({
  type: z.literal("fanOut"),
  companyId: Id,
  eventId: z.string(),
  event: z.string(),
  recordId: Id,
  version: z.int(),
  createdAt: Timestamp,
  /** Bytes of the event's data, which is in a separate row. */
  bytes: z.int(),
  count: z.int(),
  matches: Bytes,
  dueShard: z.string(),
  dueAt: Timestamp,
});
export type StoredFanOut = z.infer<typeof StoredFanOut>;

/**
 * A company's lease for creating the deliveries of its fan-outs, and the progress of this work. The names `of` and `told` are in stored
 * rows, so they must not change.
 */
export const StoredProgress = z.object({
  type: z.literal("fanOutProgress"),
  companyId: Id,
  owner: z.optional(z.string()),
  /** The end of the lease, or the end of the wait before the next message. */
  until: z.optional(Timestamp),
  /** The sort key of the fan-out whose deliveries are being created. */
  of: z.optional(z.string()),
  /** Number of matches of this fan-out whose deliveries are created. */
  told: z._default(z.int(), 0),
  movedAt: z.optional(Timestamp),
});
type StoredProgress = z.infer<typeof StoredProgress>;

/**
 * Stores the matches of an event. Returns false if all its deliveries were already created. A repeated event keeps its first matches,
 * even if the subscriptions have changed since.
 */
export async function startFanOut(
  { table, clock }: EventContext,
  event: DomainEvent,
  subscribers: readonly Subscriber[],
): Promise<boolean> {
  const { id: eventId, companyId, createdAt, recordId, version, data } = event;
  const now = clock.now();
  const count = subscribers.length;
  const expiresAt = eventDataExpiry(createdAt, now);
  const entry = { type: "fanOut", companyId, eventId, createdAt, count, expiresAt };
  const writeEntry = putIfAbsent(table, {
    ...expectedKeys.fanOut(companyId, createdAt.slice(0, 10), eventId),
    ...entry,
  });
  // The entry in the ledger of expected deliveries is written first, and the row of the fan-out last. If this row is lost, reconciliation
  // notices it.
  const [bytes, existing] = await bothEnded(keepEventData(table, event, JSON.stringify(data), now), writeEntry);
  if (existing !== undefined && ExpectedFanOut.parse(existing).doneAt !== undefined) return false;
  const matches = subscribers.map(({ webhookId, id, delayMinutes, delayChangedAt }) => [
    webhookId,
    id,
    delayMinutes,
    delayChangedAt ?? null,
  ]);
  const row: StoredFanOut = {
    type: "fanOut",
    companyId,
    eventId,
    event: event.event,
    recordId,
    version,
    createdAt,
    bytes,
    count,
    matches: packed(matches),
    dueShard: keys.dueShard(`fan-out-${eventId}`),
    dueAt: iso(now),
  };
  await putIfAbsent(table, { ...fanOutKeys.fanOut(companyId, createdAt, eventId), ...row });
  return true;
}

/** Writes the row if no row has its key. Otherwise returns the existing row. */
async function putIfAbsent(table: Table, put: Key & Item): Promise<Item | undefined> {
  try {
    await table.write({ put, when: absent });
    return undefined;
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    return error.failed[0]?.item;
  }
}

/** The progress is stored each time this many deliveries of an event were created. */
const PART = 100;
/**
 * Limits for one queue message: the number of deliveries that it may create, the total bytes of their data, and the milliseconds after
 * which it begins no further part. They limit how long a large event occupies a sender.
 */
export const MATCHES_PER_MESSAGE = 500;
export const BYTES_PER_MESSAGE = 16_000_000;
const START_WITHIN_MS = 1_000;
/**
 * Delay of the next message in seconds. One message creates at most `MATCHES_PER_MESSAGE` deliveries, and the senders need about a second
 * to send them.
 */
const PAUSE_SECONDS = 1;
/** A message may be handled this many milliseconds before its planned time, because clocks differ. */
const EARLY_MS = 100;
/** Milliseconds of the lease. They are more than the function's time-out, so the owner of an expired lease has ended its work. */
const LEASE_MS = 20_000;

/** Creates the next deliveries of the company's fan-outs. Does nothing while another function holds the lease. */
export async function expand(context: EventContext, { companyId }: FanOutMessage): Promise<void> {
  const lease = await acquire(context, companyId);
  if (lease === undefined) return;
  const release = (change: Change) => update(context.table, companyId, change, equals("owner", lease.owner));
  const free: Change = { remove: ["owner", "until"] };
  let isLeft: boolean;
  try {
    isLeft = await makeDeliveries(context, lease);
  } catch (error) {
    // The lease is freed, because the failed message comes again soon and needs it.
    await release(free).catch(() => undefined);
    throw error;
  }
  const until = iso(context.clock.now() + PAUSE_SECONDS * 1_000 - EARLY_MS);
  if ((await release(isLeft ? { set: { until }, remove: ["owner"] } : free)) === undefined) return;
  // After the lease is free, this looks for fan-outs again. The message of a fan-out that was added meanwhile found the lease taken and
  // did nothing.
  if (!isLeft && (await oldestFanOut(context.table, companyId)) === undefined) return;
  await context.queue.send([{ message: fanOutMessage(companyId), delaySeconds: isLeft ? PAUSE_SECONDS : 0 }]);
}

interface Lease {
  readonly companyId: number;
  readonly owner: string;
  readonly progress: StoredProgress;
}

/** Acquires the lease. Returns undefined if another function holds it, or if the wait before the next message has not ended. */
async function acquire(context: EventContext, companyId: number): Promise<Lease | undefined> {
  const owner = randomUUID();
  const now = context.clock.now();
  const change = { set: { type: "fanOutProgress", companyId, owner, until: iso(now + LEASE_MS) } };
  const item = await update(context.table, companyId, change, any(missing("until"), atMost("until", iso(now))));
  return item === undefined ? undefined : { companyId, owner, progress: StoredProgress.parse(item) };
}

/** Creates deliveries within the limits of one message. Returns true if there are deliveries left to create. */
async function makeDeliveries(context: EventContext, { companyId, owner, progress }: Lease): Promise<boolean> {
  const { table, clock } = context;
  const startedAt = clock.now();
  // The unused share of the message's limits `MATCHES_PER_MESSAGE` and `BYTES_PER_MESSAGE`, from 1 to 0.
  let budget = 1;
  let { of: current, told: done } = progress;
  for (;;) {
    const fanOut = await oldestFanOut(table, companyId);
    if (fanOut === undefined) return false;
    const { sk } = keyOf(fanOut);
    const event = eventIn(fanOut);
    const subscribers = subscribersIn(fanOut);
    const weight = Math.min(1, Math.max(1 / MATCHES_PER_MESSAGE, fanOut.bytes / BYTES_PER_MESSAGE));
    if (current !== sk) [current, done] = [sk, 0];
    while (done < subscribers.length) {
      const room = Math.floor(budget / weight);
      if (room < 1 || clock.now() - startedAt >= START_WITHIN_MS) return true;
      const part = subscribers.slice(done, done + Math.min(PART, room));
      // The key of the ledger entry contains the number of the part. A repeated part therefore writes the same entry again.
      await emit(
        context,
        part.map((subscriber) => ({ event, subscriber })),
        `${event.id}#${done}`,
      );
      budget -= part.length * weight;
      done += part.length;
      const now = clock.now();
      const moved = { set: { of: current, told: done, movedAt: iso(now), until: iso(now + LEASE_MS) } };
      // If the condition fails, another function has acquired the lease. That function continues from the stored progress.
      if ((await update(table, companyId, moved, equals("owner", owner))) === undefined) return false;
    }
    await finish(table, fanOut, iso(clock.now()));
  }
}

async function oldestFanOut(table: Table, companyId: number): Promise<StoredFanOut | undefined> {
  for await (const item of table.query({ ...fanOutKeys.waiting(companyId), pageItems: 1 })) {
    return StoredFanOut.parse(item);
  }
  return undefined;
}

const keyOf = ({ companyId, createdAt, eventId }: StoredFanOut): Key =>
  fanOutKeys.fanOut(companyId, createdAt, eventId);

/**
 * Marks the event as done and deletes its fan-out. A failed condition is ignored, because an earlier owner of the lease may have done the
 * same.
 */
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

async function update(table: Table, companyId: number, change: Change, when: Condition): Promise<Item | undefined> {
  try {
    return await table.write({ update: fanOutKeys.progress(companyId), change, when });
  } catch (error) {
    if (error instanceof ConditionFailed) return undefined;
    throw error;
  }
}

const subscribersIn = ({ companyId, matches }: StoredFanOut): Subscriber[] =>
  unpacked(Matches, matches).map(([webhookId, id, delayMinutes, delayChangedAt]) => ({
    companyId,
    webhookId,
    id,
    delayMinutes,
    ...(delayChangedAt !== null && { delayChangedAt }),
  }));

const eventIn = ({ eventId, event, companyId, recordId, version, createdAt, bytes }: StoredFanOut): PublishedEvent => ({
  id: eventId,
  event,
  companyId,
  recordId,
  version,
  createdAt,
  data: { bytes, text: undefined },
});
