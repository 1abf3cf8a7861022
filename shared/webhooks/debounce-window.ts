/**
 * The delivery of a window is made of many events: each has a row of its own, so that neither their number nor their size
 * meets the limit of a row. It is closed at its first attempt; from then on its events and its body are what they are.
 */
import * as z from "zod/mini";
import { type RecordPlace, windowKeys } from "#shared/db/debounce-keys.ts";
import { all, type Condition, equals, present } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import type { Table } from "#shared/db/table.ts";
import { Id, Timestamp } from "#shared/schema.ts";
import { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { readEventData } from "#shared/webhooks/event-data.ts";
import { bodyText, envelope } from "#shared/webhooks/new-delivery.ts";

/** Which delivery the events of a record join at present. Its being there means that the delivery is open. */
export const StoredWindow = z.object({
  type: z.literal("window"),
  deliveryId: z.string(),
  /** Events before this time join. */
  dueAt: Timestamp,
  eventCount: z.int(),
  /** Of the events as the body tells them. */
  bytes: z.int(),
  fromVersion: z.int(),
  toVersion: z.int(),
  expiresAt: z.int(),
});
export type StoredWindow = z.infer<typeof StoredWindow>;

export const StoredWindowEvent = z.object({
  type: z.literal("windowEvent"),
  /** The delivery that tells it. */
  deliveryId: z.string(),
  /** The one that it has opened, or would have. */
  ownId: z.string(),
  eventId: z.string(),
  recordId: Id,
  version: z.int(),
  event: z.string(),
  createdAt: Timestamp,
  /** JSON text: its bytes are a part of the body. Left out where the event's data has a row of its own. */
  data: z.optional(z.string()),
  expiresAt: z.int(),
});
export type StoredWindowEvent = z.infer<typeof StoredWindowEvent>;

/** As the body tells it. */
const eventText = ({ eventId, createdAt }: StoredWindowEvent, data: string): string =>
  `${JSON.stringify({ id: eventId, createdAt }).slice(0, -1)},"data":${data}}`;

/** Of that text, with so many bytes of data. */
export const eventBytes = (event: StoredWindowEvent, dataBytes: number): number =>
  Buffer.byteLength(eventText(event, "")) + dataBytes;

type Closed = NonNullable<StoredDelivery["closed"]>;

/** The closing of a delivery: goes with the write that takes its window away, or gives it to the next one. */
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

/** The bytes to send. Those of a window are fixed by this. */
export async function bodyToSend(table: Table, delivery: StoredDelivery): Promise<string> {
  if (delivery.body !== undefined) return delivery.body;
  if (delivery.sharedData) return sharedBody(table, delivery);
  const closed = delivery.closed ?? (await close(table, delivery));
  const events = await eventsOf(table, { ...delivery, closed });
  const { eventCount } = closed;
  if (events.length !== eventCount) throw new Error(`a window of ${eventCount} has ${events.length} events`);
  return bodyOf(table, delivery, events);
}

/** The body, as far as it is known: of an open window what has come so far. */
export async function bodySoFar(table: Table, delivery: StoredDelivery): Promise<string> {
  if (delivery.body !== undefined) return delivery.body;
  if (delivery.sharedData) return sharedBody(table, delivery);
  return bodyOf(table, delivery, await eventsOf(table, delivery));
}

/** Automatic, since a button's delivery holds its data itself. */
async function sharedBody(table: Table, delivery: StoredDelivery): Promise<string> {
  const { companyId, eventId } = delivery;
  const texts = await readEventData(table, companyId, [eventId]);
  return bodyText(delivery, null, texts.get(eventId) ?? "null");
}

function close(table: Table, delivery: StoredDelivery): Promise<Closed> {
  const window = windowKeys.window(placeOf(delivery));
  return optimistic(async () => {
    const item = await table.get(window);
    const open = item === undefined ? undefined : StoredWindow.parse(item);
    if (open?.deliveryId !== delivery.id) return closedMeanwhile(table, delivery);
    await table.transact([{ remove: window, when: unchanged(open) }, closing(delivery, open)]);
    return boundsOf(open);
  });
}

/** Holds while nothing joins the window and no other takes its place. */
export const unchanged = ({ deliveryId, eventCount }: StoredWindow): Condition =>
  all(equals("deliveryId", deliveryId), equals("eventCount", eventCount));

/** By another sender, or by the event that opened the next window. */
async function closedMeanwhile(table: Table, { companyId, webhookId, id }: StoredDelivery): Promise<Closed> {
  const { closed } = StoredDelivery.parse(await table.get(keys.delivery(companyId, webhookId, id)));
  if (closed === undefined) throw new Error("a delivery without body and window");
  return closed;
}

function placeOf({ companyId, webhookId, registrationId, recordId }: StoredDelivery): RecordPlace {
  if (registrationId === null || recordId === undefined) throw new Error("a delivery without body and window");
  return { companyId, webhookId, registrationId, recordId };
}

/** In the order of the record's versions. */
async function eventsOf(table: Table, delivery: StoredDelivery): Promise<StoredWindowEvent[]> {
  const { id, closed } = delivery;
  const { fromVersion = 0, toVersion = Number.MAX_SAFE_INTEGER } = closed ?? {};
  const found: StoredWindowEvent[] = [];
  for await (const item of table.query(windowKeys.events(placeOf(delivery), fromVersion, toVersion))) {
    const event = StoredWindowEvent.parse(item);
    if (event.deliveryId === id) found.push(event);
  }
  return found;
}

/** `data` is that of the newest event: how things are now. */
async function bodyOf(table: Table, delivery: StoredDelivery, events: readonly StoredWindowEvent[]): Promise<string> {
  const shared = events.filter(({ data }) => data === undefined).map(({ eventId }) => eventId);
  const texts = shared.length === 0 ? undefined : await readEventData(table, delivery.companyId, shared);
  const dataOf = ({ data, eventId }: StoredWindowEvent): string => data ?? texts?.get(eventId) ?? "null";
  const head = JSON.stringify(envelope(delivery, null, events.length)).slice(0, -1);
  const last = events.at(-1);
  const told = events.map((event) => eventText(event, dataOf(event))).join();
  return `${head},"data":${last === undefined ? "null" : dataOf(last)},"events":[${told}]}`;
}
