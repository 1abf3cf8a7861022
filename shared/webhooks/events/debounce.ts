/**
 * Debounces the events of a registration with a delay, and makes the bodies of deliveries. The first event of a record opens a window.
 * Later events join the delivery of the window, until the first attempt of this delivery closes the window. The creation time of an event
 * decides which window it joins, however late the event is published. Each event has its own row, because a row can be at most 400 KB
 * large.
 */
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import { absent, all, type Condition, equals, present, type Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/plan.ts";
import type { Reads } from "#shared/db/reads.ts";
import type { Table } from "#shared/db/table.ts";
import { debounceKeys, type RegisteredRecord } from "#shared/db/webhook-keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { Id, Timestamp } from "#shared/schema.ts";
import {
  bodyText,
  deliveryId,
  deliveryItem,
  deliveryWithoutBody,
  envelope,
  StoredDelivery,
} from "#shared/webhooks/delivery.ts";
import { readEventData } from "#shared/webhooks/event-data.ts";
import type { Match } from "#shared/webhooks/events/matching.ts";
import { expectedWrite } from "#shared/webhooks/expected-deliveries.ts";
import { delayMs } from "#shared/webhooks/retry-plan.ts";

/** The row of an open debounce window. `deliveryId` is the delivery that collects the further events of the record. */
export const StoredWindow = z.object({
  type: z.literal("window"),
  deliveryId: z.string(),
  /** Present only while every event of the window comes from a bulk job. */
  isBulk: z.optional(z.literal(true)),
  /** Events that happen before this time join the window. */
  dueAt: Timestamp,
  eventCount: z.int(),
  bytes: z.int(),
  fromVersion: z.int(),
  toVersion: z.int(),
  expiresAt: z.int(),
});
export type StoredWindow = z.infer<typeof StoredWindow>;

export const StoredWindowEvent = z.object({
  type: z.literal("windowEvent"),
  deliveryId: z.string(),
  /** The id that a delivery of this event alone would have. If the event opened the window, it is the id of the window's delivery. */
  ownId: z.string(),
  eventId: z.string(),
  recordId: Id,
  version: z.int(),
  event: z.string(),
  createdAt: Timestamp,
  /** The event's data as JSON text. It is absent if the data is in a separate row. */
  data: z.optional(z.string()),
  expiresAt: z.int(),
});
export type StoredWindowEvent = z.infer<typeof StoredWindowEvent>;

const ENVELOPE_BYTES = 1_000;
const KEPT_LONGER_SECONDS = 2 * 86_400;

/**
 * Adds the event to the open window or opens one, in one transaction. If a sender closes the window at the same time, either the body that
 * it sends includes the event, or the event opens a new window. Returns the delivery if the caller must queue a message.
 */
export function debounce(table: Table, match: Match, timeScale: number): Promise<StoredDelivery | undefined> {
  const { companyId, webhookId } = match.subscriber;
  return optimistic(async () => {
    const step = stepOf(match, timeScale, await readWindow(table, windowKeyOf(match)));
    try {
      await table.transact([{ put: { ...eventKeyOf(match), ...step.row }, when: absent }, ...step.writes]);
      return step.opened;
    } catch (error) {
      if (!isRepeated(error)) throw error;
      return needingMessage(await table.get(keys.delivery(companyId, webhookId, ownId(match))));
    }
  });
}

/**
 * Returns true if the event was published before a user set or removed the delay of the registration. The row of that publication has
 * another key, so a repeated publication would not find it. Only an event that may be older than the last change of the delay is looked up.
 */
export async function wasPublishedWithOtherDelay(table: Table, match: Match): Promise<boolean> {
  const { event, subscriber } = match;
  const { companyId, webhookId, delayMinutes, delayChangedAt } = subscriber;
  const since = delayChangedAt === undefined ? 0 : Date.parse(delayChangedAt) + limits.clockDifferenceMs;
  if (Date.parse(event.createdAt) > since) return false;
  const key = delayMinutes > 0 ? keys.delivery(companyId, webhookId, ownId(match)) : eventKeyOf(match);
  return (await table.get(key)) !== undefined;
}

async function readWindow(table: Reads, key: Key): Promise<StoredWindow | undefined> {
  const item = await table.get(key);
  return item === undefined ? undefined : StoredWindow.parse(item);
}

interface Step {
  readonly row: StoredWindowEvent;
  readonly writes: readonly Write[];
  readonly opened: StoredDelivery | undefined;
}

function stepOf(match: Match, timeScale: number, open: StoredWindow | undefined): Step {
  const { event, subscriber } = match;
  const { bytes: dataBytes, text } = event.data;
  const row: StoredWindowEvent = {
    type: "windowEvent",
    deliveryId: ownId(match),
    ownId: ownId(match),
    eventId: event.id,
    recordId: event.recordId,
    version: event.version,
    event: event.event,
    createdAt: event.createdAt,
    data: text,
    expiresAt: 0,
  };
  const bytes = Buffer.byteLength(eventText(row, "")) + dataBytes;
  const isInTime = open !== undefined && event.createdAt < open.dueAt;
  if (isInTime && open.bytes + bytes + dataBytes + ENVELOPE_BYTES <= limits.windowBodyBytes) {
    return joining(match, row, bytes, open);
  }
  const dueAt = isInTime ? open.dueAt : iso(Date.parse(event.createdAt) + delayMs(subscriber.delayMinutes, timeScale));
  return opening(match, row, bytes, windowDelivery(match, dueAt), open);
}

function joining(match: Match, row: StoredWindowEvent, bytes: number, open: StoredWindow): Step {
  const { deliveryId, expiresAt, dueAt } = open;
  const { event, subscriber } = match;
  const next: StoredWindow = {
    ...open,
    isBulk: event.isBulk && open.isBulk,
    eventCount: open.eventCount + 1,
    bytes: open.bytes + bytes,
    fromVersion: Math.min(open.fromVersion, row.version),
    toVersion: Math.max(open.toVersion, row.version),
  };
  const writes: Write[] = [{ put: { ...windowKeyOf(match), ...next }, when: unchanged(open) }];
  const joined = { ...row, deliveryId, expiresAt };
  if (!open.isBulk || event.isBulk) return { row: joined, writes, opened: undefined };
  // The delivery's message may wait in the message group of bulk jobs, and an ordinary event must not wait there. The delivery therefore
  // loses `isBulk`, and gets a message in the ordinary group.
  const { companyId, webhookId } = subscriber;
  writes.push({
    update: keys.delivery(companyId, webhookId, deliveryId),
    change: { remove: ["isBulk"] },
    when: present,
  });
  return { row: joined, writes, opened: { ...windowDelivery(match, dueAt), id: deliveryId } };
}

function opening(
  match: Match,
  row: StoredWindowEvent,
  bytes: number,
  opened: StoredDelivery,
  before: StoredWindow | undefined,
): Step {
  const { id, dueAt, isBulk } = opened;
  const expiresAt = opened.expiresAt + KEPT_LONGER_SECONDS;
  const next: StoredWindow = {
    type: "window",
    deliveryId: id,
    isBulk,
    dueAt,
    eventCount: 1,
    bytes,
    fromVersion: row.version,
    toVersion: row.version,
    expiresAt,
  };
  const writes: Write[] = [
    { put: { ...windowKeyOf(match), ...next }, when: before === undefined ? absent : unchanged(before) },
    { put: deliveryItem(opened), when: absent },
    // The key of the entry in the list of expected deliveries contains the delivery's id. With the event's id, all windows that one event
    // opens would write the same entry, and their transactions would conflict.
    expectedWrite([{ ...opened, eventId: id }]),
    ...(before === undefined ? [] : [closing(opened, before)]),
  ];
  return { row: { ...row, expiresAt }, writes, opened };
}

function windowDelivery(match: Match, dueAt: string): StoredDelivery {
  const { companyId, webhookId, id: registrationId } = match.subscriber;
  const { id: eventId, event, createdAt, recordId, isBulk } = match.event;
  const about = { id: ownId(match), companyId, webhookId, registrationId, event, eventId, isBulk, createdAt };
  return {
    ...deliveryWithoutBody({ ...about, dueMs: Date.parse(dueAt), trigger: "automatic", triggeredBy: null }),
    recordId,
  };
}

const subjectOf = ({ event: { recordId }, subscriber: { companyId, webhookId, id } }: Match): RegisteredRecord => ({
  companyId,
  webhookId,
  registrationId: id,
  recordId,
});

function eventKeyOf(match: Match): Key {
  const { id, event, version } = match.event;
  return debounceKeys.event(subjectOf(match), version, id.slice(id.indexOf(event)));
}

export const windowKeyOf = (match: Match): Key => debounceKeys.window(subjectOf(match));

/** The id of the delivery that the event opens if it joins no window. */
const ownId = ({ event, subscriber }: Match): string => deliveryId(event.id, subscriber.id, event.createdAt);

/** Returns true if the write failed because the event was already published. */
const isRepeated = (error: unknown): boolean =>
  error instanceof ConditionFailed &&
  error.failed.some(({ item }) => item?.type === "windowEvent" || item?.type === "delivery");

/** Returns the delivery if it waits for its first attempt. Its creator may have been killed before it queued the message. */
function needingMessage(item: unknown): StoredDelivery | undefined {
  const delivery = item === undefined ? undefined : StoredDelivery.parse(item);
  return delivery?.state === "waiting" && delivery.attempt === 1 ? delivery : undefined;
}

type Closed = NonNullable<StoredDelivery["closed"]>;

/** Returns the write that closes a debounce window. Add it to the transaction that removes the window or opens the next one. */
const closing = ({ companyId, webhookId }: StoredDelivery, { deliveryId, ...open }: StoredWindow): Write => ({
  update: keys.delivery(companyId, webhookId, deliveryId),
  change: { set: { closed: boundsOf(open) } },
  when: present,
});

const boundsOf = ({ eventCount, fromVersion, toVersion }: Closed): Closed => ({
  eventCount,
  fromVersion,
  toVersion,
});

const eventText = ({ eventId, createdAt }: StoredWindowEvent, data: string): string =>
  `${JSON.stringify({ id: eventId, createdAt }).slice(0, -1)},"data":${data}}`;

/** Returns the body to send. Closes an open debounce window first, so that later attempts send the same body. */
export async function bodyToSend(table: Table, delivery: StoredDelivery): Promise<string> {
  if (delivery.body !== undefined) return delivery.body;
  if (delivery.sharedData) return sharedBody(table, delivery);
  const closed = delivery.closed ?? (await close(table, delivery));
  const events = await eventsOf(table, { ...delivery, closed });
  const { eventCount } = closed;
  if (events.length !== eventCount)
    throw new Error(`a debounce window of ${eventCount} events has ${events.length} rows`);
  return bodyOf(table, delivery, events);
}

/** Returns the body for the API. For an open debounce window, it contains the events that have joined until now. */
export async function bodySoFar(table: Reads, delivery: StoredDelivery): Promise<string> {
  if (delivery.body !== undefined) return delivery.body;
  if (delivery.sharedData) return sharedBody(table, delivery);
  return bodyOf(table, delivery, await eventsOf(table, delivery));
}

/** Makes the body from event data in a separate row. A manual delivery always stores its own body, so `triggeredBy` is null here. */
async function sharedBody(table: Reads, delivery: StoredDelivery): Promise<string> {
  const { companyId, eventId } = delivery;
  const texts = await readEventData(table, companyId, [eventId]);
  return bodyText(delivery, null, texts.get(eventId) ?? "null");
}

function close(table: Table, delivery: StoredDelivery): Promise<Closed> {
  const window = debounceKeys.window(recordOf(delivery));
  return optimistic(async () => {
    const open = await readWindow(table, window);
    if (open?.deliveryId !== delivery.id) return closedByOther(table, delivery);
    await table.transact([{ remove: window, when: unchanged(open) }, closing(delivery, open)]);
    return boundsOf(open);
  });
}

/** Returns the condition that no event has joined the window since it was read, and no other window has replaced it. */
const unchanged = ({ deliveryId, eventCount }: StoredWindow): Condition =>
  all(equals("deliveryId", deliveryId), equals("eventCount", eventCount));

/** Reads the bounds of a window that another sender, or an event that opened the next window, has closed. */
async function closedByOther(table: Reads, { companyId, webhookId, id }: StoredDelivery): Promise<Closed> {
  const { closed } = StoredDelivery.parse(await table.get(keys.delivery(companyId, webhookId, id)));
  if (closed === undefined) throw new Error("a delivery has neither a body nor a debounce window");
  return closed;
}

function recordOf({ companyId, webhookId, registrationId, recordId }: StoredDelivery): RegisteredRecord {
  if (registrationId === null || recordId === undefined)
    throw new Error("a delivery has neither a body nor a debounce window");
  return { companyId, webhookId, registrationId, recordId };
}

async function eventsOf(table: Reads, delivery: StoredDelivery): Promise<StoredWindowEvent[]> {
  const { id, closed } = delivery;
  const { fromVersion = 0, toVersion = Number.MAX_SAFE_INTEGER } = closed ?? {};
  const found: StoredWindowEvent[] = [];
  for await (const item of table.query(debounceKeys.events(recordOf(delivery), fromVersion, toVersion))) {
    const event = StoredWindowEvent.parse(item);
    if (event.deliveryId === id) found.push(event);
  }
  return found;
}

async function bodyOf(table: Reads, delivery: StoredDelivery, events: readonly StoredWindowEvent[]): Promise<string> {
  const shared = events.filter(({ data }) => data === undefined).map(({ eventId }) => eventId);
  const texts = shared.length === 0 ? undefined : await readEventData(table, delivery.companyId, shared);
  const dataOf = ({ data, eventId }: StoredWindowEvent): string => data ?? texts?.get(eventId) ?? "null";
  const head = JSON.stringify(envelope(delivery, null, events.length)).slice(0, -1);
  const last = events.at(-1);
  const eventTexts = events.map((event) => eventText(event, dataOf(event))).join();
  return `${head},"data":${last === undefined ? "null" : dataOf(last)},"events":[${eventTexts}]}`;
}
