/**
 * Makes the bodies of deliveries, and closes debounce windows. The first attempt of a delivery closes its window. Each event is stored in a
 * separate row, because a row can be at most 400 KB large.
 */
import * as z from "zod/mini";
import { optimistic } from "#shared/db/conditional-writes.ts";
import type { Write } from "#shared/db/expression.ts";
import { all, type Condition, equals, present } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import type { Table } from "#shared/db/table.ts";
import { debounceKeys, type RegisteredRecord } from "#shared/db/webhook-keys.ts";
import { Id, Timestamp } from "#shared/schema.ts";
import { bodyText, envelope, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { readEventData } from "#shared/webhooks/event-data.ts";

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
  /** The id of a delivery of this event alone. It equals `deliveryId` if the event opened the window. Otherwise no such delivery exists. */
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

const eventText = ({ eventId, createdAt }: StoredWindowEvent, data: string): string =>
  `${JSON.stringify({ id: eventId, createdAt }).slice(0, -1)},"data":${data}}`;

export const eventBytes = (event: StoredWindowEvent, dataBytes: number): number =>
  Buffer.byteLength(eventText(event, "")) + dataBytes;

type Closed = NonNullable<StoredDelivery["closed"]>;

/** Returns the write that closes a debounce window. Add it to the transaction that removes the window or opens the next one. */
export const closing = (
  { companyId, webhookId }: Pick<StoredDelivery, "companyId" | "webhookId">,
  { deliveryId, ...open }: Pick<StoredWindow, "deliveryId" | keyof Closed>,
): Write => ({
  update: keys.delivery(companyId, webhookId, deliveryId),
  change: { set: { closed: boundsOf(open) } },
  when: present,
});

const boundsOf = ({ eventCount, fromVersion, toVersion }: Closed): Closed => ({
  eventCount,
  fromVersion,
  toVersion,
});

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

/** Returns the body for the API. Of an open debounce window, it contains the events that have joined until now. */
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
  const window = debounceKeys.window(subjectOf(delivery));
  return optimistic(async () => {
    const item = await table.get(window);
    const open = item === undefined ? undefined : StoredWindow.parse(item);
    if (open?.deliveryId !== delivery.id) return closedByOther(table, delivery);
    await table.transact([{ remove: window, when: unchanged(open) }, closing(delivery, open)]);
    return boundsOf(open);
  });
}

/** Returns the condition that no event has joined the window since it was read, and no other window has replaced it. */
export const unchanged = ({ deliveryId, eventCount }: StoredWindow): Condition =>
  all(equals("deliveryId", deliveryId), equals("eventCount", eventCount));

/** Reads the result of a close by another sender, or by an event that opened the next window. */
async function closedByOther(table: Reads, { companyId, webhookId, id }: StoredDelivery): Promise<Closed> {
  const { closed } = StoredDelivery.parse(await table.get(keys.delivery(companyId, webhookId, id)));
  if (closed === undefined) throw new Error("a delivery has neither a body nor a debounce window");
  return closed;
}

function subjectOf({ companyId, webhookId, registrationId, recordId }: StoredDelivery): RegisteredRecord {
  if (registrationId === null || recordId === undefined)
    throw new Error("a delivery has neither a body nor a debounce window");
  return { companyId, webhookId, registrationId, recordId };
}

async function eventsOf(table: Reads, delivery: StoredDelivery): Promise<StoredWindowEvent[]> {
  const { id, closed } = delivery;
  const { fromVersion = 0, toVersion = Number.MAX_SAFE_INTEGER } = closed ?? {};
  const found: StoredWindowEvent[] = [];
  for await (const item of table.query(debounceKeys.events(subjectOf(delivery), fromVersion, toVersion))) {
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
