/**
 * Collects the events of a registration with a delay (debounce). The first event of a record opens a window: one delivery that becomes due
 * after the delay. Later events of the record join this delivery until it is due. The creation time of an event, and not the time at which
 * the stream publishes it, decides which window the event joins. An event therefore joins the same window if it is published late.
 */
import { iso } from "#shared/clock.ts";
import { optimistic } from "#shared/db/conditional-writes.ts";
import type { Write } from "#shared/db/expression.ts";
import { absent, present } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { debounceKeys, type RegisteredRecord } from "#shared/db/webhook-keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import {
  closing,
  eventBytes,
  StoredWindow,
  type StoredWindowEvent,
  unchanged,
} from "#shared/webhooks/debounce-window.ts";
import { deliveryId, deliveryItem, deliveryWithoutBody, StoredDelivery } from "#shared/webhooks/delivery.ts";
import type { Match, PublishedEvent } from "#shared/webhooks/events/matching.ts";
import { expectedWrite } from "#shared/webhooks/expected-deliveries.ts";
import { delayMs } from "#shared/webhooks/retry-plan.ts";

/** Upper bound for the bytes of a body without its events. */
const ENVELOPE_BYTES = 1_000;
/**
 * Upper bound for the difference between the clocks of two functions. One function writes the time of an event, and another one may write
 * the time at which the delay was changed. If these two times differ by less than this bound, they do not show which of the two happened
 * first.
 */
const CLOCK_SKEW_MS = 60_000;
/** Seconds by which the rows of debounce windows and of their events outlive the delivery. */
const KEPT_LONGER_SECONDS = 2 * 86_400;

/**
 * Adds the event to the open window, or opens a new window, in one transaction. If a sender closes the window at the same time, either the
 * body that it sends includes the event, or the event opens a new window. Returns the delivery if the caller must queue a message for it.
 */
export function debounce(table: Table, match: Match, timeScale: number): Promise<StoredDelivery | undefined> {
  const { event, subscriber } = match;
  const windowKey = windowKeyOf(match);
  return optimistic(async () => {
    const item = await table.get(windowKey);
    const open = item === undefined ? undefined : StoredWindow.parse(item);
    const step = stepOf(windowKey, match, timeScale, open);
    try {
      const eventKey = debounceKeys.event(subjectOf(match), event.version, event.event);
      await table.transact([{ put: { ...eventKey, ...step.row }, when: absent }, ...step.writes]);
      return step.opened;
    } catch (error) {
      if (!isRepeated(error)) throw error;
      return needingMessage(await table.get(keys.delivery(subscriber.companyId, subscriber.webhookId, ownId(match))));
    }
  });
}

/**
 * Returns true if the event was already published while the registration had another delay. The stream may repeat an event, and the delay
 * may have changed since the first publication. A delayed event and an event without a delay are stored under different keys, so the
 * repetition would not find the row of the first publication, and the event would be delivered twice. The check reads the table only for
 * events that may be older than the last change of the delay.
 */
export async function wasPublishedWithOtherDelay(table: Table, match: Match): Promise<boolean> {
  const { event, subscriber } = match;
  const { companyId, webhookId, delayMinutes, delayChangedAt } = subscriber;
  const since = delayChangedAt === undefined ? 0 : Date.parse(delayChangedAt) + CLOCK_SKEW_MS;
  if (Date.parse(event.createdAt) > since) return false;
  const ownDelivery = keys.delivery(companyId, webhookId, ownId(match));
  const inWindow = debounceKeys.event(subjectOf(match), event.version, event.event);
  return (await table.get(delayMinutes > 0 ? ownDelivery : inWindow)) !== undefined;
}

interface Step {
  readonly row: StoredWindowEvent;
  readonly writes: readonly Write[];
  readonly opened: StoredDelivery | undefined;
}

function stepOf(windowKey: Key, match: Match, timeScale: number, open: StoredWindow | undefined): Step {
  const { event, subscriber } = match;
  const row = eventRow(event, ownId(match));
  const bytes = eventBytes(row, event.data.bytes);
  const isInTime = open !== undefined && event.createdAt < open.dueAt;
  if (isInTime && open.bytes + bytes + event.data.bytes + ENVELOPE_BYTES <= limits.windowBodyBytes) {
    return joining(windowKey, open, row, bytes, match);
  }
  // If the event is in time for the open window but the body has no room for it, the event opens another window with the same due time.
  const dueAt = isInTime ? open.dueAt : iso(Date.parse(event.createdAt) + delayMs(subscriber.delayMinutes, timeScale));
  return opening(windowKey, open, row, bytes, windowDelivery(match, dueAt));
}

function joining(
  windowKey: Key,
  { isBulk, ...open }: StoredWindow,
  row: StoredWindowEvent,
  bytes: number,
  match: Match,
): Step {
  const { deliveryId, expiresAt, dueAt } = open;
  const { event, subscriber } = match;
  const next: StoredWindow = {
    ...open,
    ...(isBulk && event.isBulk && { isBulk }),
    eventCount: open.eventCount + 1,
    bytes: open.bytes + bytes,
    fromVersion: Math.min(open.fromVersion, row.version),
    toVersion: Math.max(open.toVersion, row.version),
  };
  const writes: Write[] = [{ put: { ...windowKey, ...next }, when: unchanged(open) }];
  const joined = { ...row, deliveryId, expiresAt };
  if (!isBulk || event.isBulk) return { row: joined, writes, opened: undefined };
  // Until now, all events of the delivery came from bulk jobs, so its message is in the message group of bulk jobs and may have to wait
  // there. This event must not wait. The delivery therefore loses `isBulk`, and gets another message in the ordinary message group.
  const { companyId, webhookId } = subscriber;
  writes.push({
    update: keys.delivery(companyId, webhookId, deliveryId),
    change: { remove: ["isBulk"] },
    when: present,
  });
  return { row: joined, writes, opened: { ...windowDelivery(match, dueAt), id: deliveryId } };
}

/** Returns the writes that open a window with this event and close the previous window. */
function opening(
  windowKey: Key,
  before: StoredWindow | undefined,
  row: StoredWindowEvent,
  bytes: number,
  opened: StoredDelivery,
): Step {
  const { id, dueAt } = opened;
  const expiresAt = opened.expiresAt + KEPT_LONGER_SECONDS;
  const versions = { fromVersion: row.version, toVersion: row.version };
  const bulk = opened.isBulk && { isBulk: opened.isBulk };
  const next: StoredWindow = {
    type: "window",
    deliveryId: id,
    ...bulk,
    dueAt,
    eventCount: 1,
    bytes,
    ...versions,
    expiresAt,
  };
  const writes: Write[] = [
    { put: { ...windowKey, ...next }, when: before === undefined ? absent : unchanged(before) },
    { put: deliveryItem(opened), when: absent },
    // The entry in the list of expected deliveries gets a key with the delivery's id instead of the event's id. One event may open windows
    // of several registrations, each in a separate transaction. With the event's id, these transactions would update the same entry and
    // conflict.
    expectedWrite([{ ...opened, eventId: id }]),
    ...(before === undefined ? [] : [closing(opened, before)]),
  ];
  return { row: { ...row, expiresAt }, writes, opened };
}

function windowDelivery(match: Match, dueAt: string): StoredDelivery {
  const { companyId, webhookId, id: registrationId } = match.subscriber;
  const { id: eventId, event, createdAt, recordId, isBulk } = match.event;
  const bulk = isBulk && { isBulk };
  const about = { id: ownId(match), companyId, webhookId, registrationId, event, eventId, ...bulk, createdAt };
  return {
    ...deliveryWithoutBody({ ...about, dueMs: Date.parse(dueAt), trigger: "automatic", triggeredBy: null }),
    recordId,
  };
}

/** Returns the pair of registration and record. Each pair has separate debounce windows. */
const subjectOf = ({ event: { recordId }, subscriber: { companyId, webhookId, id } }: Match): RegisteredRecord => ({
  companyId,
  webhookId,
  registrationId: id,
  recordId,
});

export const windowKeyOf = (match: Match): Key => debounceKeys.window(subjectOf(match));

/** The id of the delivery that the event opens if it joins no window. */
const ownId = ({ event, subscriber }: Match): string => deliveryId(event.id, subscriber.id, event.createdAt);

const eventRow = (
  { id, recordId, version, event, createdAt, data }: PublishedEvent,
  deliveryId: string,
): StoredWindowEvent => ({
  type: "windowEvent",
  deliveryId,
  ownId: deliveryId,
  eventId: id,
  recordId,
  version,
  event,
  createdAt,
  ...(data.text !== undefined && { data: data.text }),
  expiresAt: 0,
});

/**
 * Returns true if the write failed because the event was already published. In this case the row of the event or of its delivery exists.
 */
const isRepeated = (error: unknown): boolean =>
  error instanceof ConditionFailed &&
  error.failed.some(({ item }) => item?.type === "windowEvent" || item?.type === "delivery");

/**
 * Returns the existing delivery if its first attempt has not begun. The function that created it may have been killed before it sent the
 * queue message, so the caller sends the message.
 */
function needingMessage(item: unknown): StoredDelivery | undefined {
  const delivery = item === undefined ? undefined : StoredDelivery.parse(item);
  return delivery?.state === "waiting" && delivery.attempt === 1 ? delivery : undefined;
}
