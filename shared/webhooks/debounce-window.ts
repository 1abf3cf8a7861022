/**
 * Makes the bodies of deliveries and closes debounce windows. A debounced delivery collects the events of one record until its window
 * closes. The first attempt closes the window. Each event has a separate row, because one row holds at most 400 KB.
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

/** An open debounce window. It names the delivery that collects further events of the record. */
export const StoredWindow = z.object({
  type: z.literal("window"),
  deliveryId: z.string(),
  /** Events from before this time join the debounce window. */
  dueAt: Timestamp,
  eventCount: z.int(),
  /** The total length of the events as text, in bytes. */
  bytes: z.int(),
  fromVersion: z.int(),
  toVersion: z.int(),
  expiresAt: z.int(),
});
export type StoredWindow = z.infer<typeof StoredWindow>;

export const StoredWindowEvent = z.object({
  type: z.literal("windowEvent"),
  /** The delivery whose body contains the event. */
  deliveryId: z.string(),
  /** The delivery that the event would open if no debounce window were open. It differs from `deliveryId` if the event joined a window. */
  ownId: z.string(),
  eventId: z.string(),
  recordId: Id,
  version: z.int(),
  event: z.string(),
  createdAt: Timestamp,
  /** The event's data as JSON text. Absent if the data is in a separate row. */
  data: z.optional(z.string()),
  expiresAt: z.int(),
});
export type StoredWindowEvent = z.infer<typeof StoredWindowEvent>;

/** The event as it appears in the list of events in the body. */
const eventText = ({ eventId, createdAt }: StoredWindowEvent, data: string): string =>
  `${JSON.stringify({ id: eventId, createdAt }).slice(0, -1)},"data":${data}}`;

/** Returns the length of the event's text in the body, in bytes. `dataBytes` is the length of its data. */
export const eventBytes = (event: StoredWindowEvent, dataBytes: number): number =>
  Buffer.byteLength(eventText(event, "")) + dataBytes;

type Closed = NonNullable<StoredDelivery["closed"]>;

/**
 * Stores which events the delivery contains after its debounce window has closed: their number and the range of their record versions. Add
 * this write to the transaction that removes the window or opens the next one.
 */
export const closing = (
  { companyId, webhookId }: Pick<StoredDelivery, "companyId" | "webhookId">,
  { deliveryId, ...open }: StoredWindow,
): Write => ({
  update: keys.delivery(companyId, webhookId, deliveryId),
  change: { set: { closed: boundsOf(open) } },
  when: present,
});

const boundsOf = ({ eventCount, fromVersion, toVersion }: Omit<StoredWindow, "deliveryId">): Closed => ({
  eventCount,
  fromVersion,
  toVersion,
});

/** Returns the body to send. Closes the debounce window of the delivery, so that later attempts send the same body. */
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

/** Returns the body to show. If the debounce window is still open, it contains the events so far. */
export async function bodySoFar(table: Reads, delivery: StoredDelivery): Promise<string> {
  if (delivery.body !== undefined) return delivery.body;
  if (delivery.sharedData) return sharedBody(table, delivery);
  return bodyOf(table, delivery, await eventsOf(table, delivery));
}

/**
 * Makes the body of a delivery whose event data is in a separate row. Such a delivery is never manual, because a manual delivery stores its
 * own body.
 */
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

/** The condition that the debounce window is as it was read: no event has joined it, and no other window has replaced it. */
export const unchanged = ({ deliveryId, eventCount }: StoredWindow): Condition =>
  all(equals("deliveryId", deliveryId), equals("eventCount", eventCount));

/** Reads which events the delivery contains, after another sender or a later event has closed its debounce window. */
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

/** Returns the events of the delivery, sorted by the version of the record. */
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

/** Makes the body from these events. Its `data` is the data of the newest event. */
async function bodyOf(table: Reads, delivery: StoredDelivery, events: readonly StoredWindowEvent[]): Promise<string> {
  const shared = events.filter(({ data }) => data === undefined).map(({ eventId }) => eventId);
  const texts = shared.length === 0 ? undefined : await readEventData(table, delivery.companyId, shared);
  const dataOf = ({ data, eventId }: StoredWindowEvent): string => data ?? texts?.get(eventId) ?? "null";
  const head = JSON.stringify(envelope(delivery, null, events.length)).slice(0, -1);
  const last = events.at(-1);
  const eventTexts = events.map((event) => eventText(event, dataOf(event))).join();
  return `${head},"data":${last === undefined ? "null" : dataOf(last)},"events":[${eventTexts}]}`;
}
