/**
 * Bodies of deliveries, and debounce windows. A delayed delivery is made from the events of its debounce window. Each event of a window has
 * a separate row, because one row holds at most 400 KB. The first attempt closes the window, which fixes the body.
 */
import * as z from "zod/mini";
import { optimistic } from "#shared/db/conditional-writes.ts";
import type { Write } from "#shared/db/expression.ts";
import { all, type Condition, equals, present } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { debounceKeys, type RegisteredRecord } from "#shared/db/webhook-keys.ts";
import { Id, Timestamp } from "#shared/schema.ts";
import { bodyText, envelope, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { readEventData } from "#shared/webhooks/event-data.ts";

/** A debounce window. It names the delivery that further events of the record join. The row exists while the window is open. */
export const StoredWindow = z.object({
  type: z.literal("window"),
  deliveryId: z.string(),
  /** Events before this time join the window. */
  dueAt: Timestamp,
  eventCount: z.int(),
  /** The length of the events in the body, in bytes. */
  bytes: z.int(),
  fromVersion: z.int(),
  toVersion: z.int(),
  expiresAt: z.int(),
});
export type StoredWindow = z.infer<typeof StoredWindow>;

export const StoredWindowEvent = z.object({
  type: z.literal("windowEvent"),
  /** The id of the delivery whose body contains the event. */
  deliveryId: z.string(),
  /** The id of the delivery that the event opened, or would have opened without an open window. */
  ownId: z.string(),
  eventId: z.string(),
  recordId: Id,
  version: z.int(),
  event: z.string(),
  createdAt: Timestamp,
  /** The JSON text of the event's data, which becomes a part of the body. Absent if the data has a separate row. */
  data: z.optional(z.string()),
  expiresAt: z.int(),
});
export type StoredWindowEvent = z.infer<typeof StoredWindowEvent>;

/** The JSON text of the event in the body. */
const eventText = ({ eventId, createdAt }: StoredWindowEvent, data: string): string =>
  `${JSON.stringify({ id: eventId, createdAt }).slice(0, -1)},"data":${data}}`;

/** The length of the event's text in bytes, for data of this length. */
export const eventBytes = (event: StoredWindowEvent, dataBytes: number): number =>
  Buffer.byteLength(eventText(event, "")) + dataBytes;

type Closed = NonNullable<StoredDelivery["closed"]>;

/**
 * Stores the number and range of a delivery's final events. Put this write into the transaction that removes the delivery's window or opens
 * the next window.
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

/** The body to send. Closes the delivery's debounce window. */
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

/** The body to show. If the debounce window is open, the body contains the events so far. */
export async function bodySoFar(table: Table, delivery: StoredDelivery): Promise<string> {
  if (delivery.body !== undefined) return delivery.body;
  if (delivery.sharedData) return sharedBody(table, delivery);
  return bodyOf(table, delivery, await eventsOf(table, delivery));
}

/** Makes the body of a delivery with shared data. Such a delivery is always automatic, because a manual delivery stores its own body. */
async function sharedBody(table: Table, delivery: StoredDelivery): Promise<string> {
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

/** Holds as long as no event has joined the window and no other window has replaced it. */
export const unchanged = ({ deliveryId, eventCount }: StoredWindow): Condition =>
  all(equals("deliveryId", deliveryId), equals("eventCount", eventCount));

/** The number and range of the events if the window was closed by another sender, or by the event that opened the next window. */
async function closedByOther(table: Table, { companyId, webhookId, id }: StoredDelivery): Promise<Closed> {
  const { closed } = StoredDelivery.parse(await table.get(keys.delivery(companyId, webhookId, id)));
  if (closed === undefined) throw new Error("a delivery has neither a body nor a debounce window");
  return closed;
}

function subjectOf({ companyId, webhookId, registrationId, recordId }: StoredDelivery): RegisteredRecord {
  if (registrationId === null || recordId === undefined)
    throw new Error("a delivery has neither a body nor a debounce window");
  return { companyId, webhookId, registrationId, recordId };
}

/** The events of the delivery, sorted by the version of the record. */
async function eventsOf(table: Table, delivery: StoredDelivery): Promise<StoredWindowEvent[]> {
  const { id, closed } = delivery;
  const { fromVersion = 0, toVersion = Number.MAX_SAFE_INTEGER } = closed ?? {};
  const found: StoredWindowEvent[] = [];
  for await (const item of table.query(debounceKeys.events(subjectOf(delivery), fromVersion, toVersion))) {
    const event = StoredWindowEvent.parse(item);
    if (event.deliveryId === id) found.push(event);
  }
  return found;
}

/** Makes the body from these events. The body's `data` is the data of the newest event. */
async function bodyOf(table: Table, delivery: StoredDelivery, events: readonly StoredWindowEvent[]): Promise<string> {
  const shared = events.filter(({ data }) => data === undefined).map(({ eventId }) => eventId);
  const texts = shared.length === 0 ? undefined : await readEventData(table, delivery.companyId, shared);
  const dataOf = ({ data, eventId }: StoredWindowEvent): string => data ?? texts?.get(eventId) ?? "null";
  const head = JSON.stringify(envelope(delivery, null, events.length)).slice(0, -1);
  const last = events.at(-1);
  const eventTexts = events.map((event) => eventText(event, dataOf(event))).join();
  return `${head},"data":${last === undefined ? "null" : dataOf(last)},"events":[${eventTexts}]}`;
}
