/**
 * Debounces the events of a registration with a delay. The first event of a record opens a window, and later events join its delivery until
 * it is due. The creation time of an event decides which window it joins, so that an event published late joins the same window.
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

const ENVELOPE_BYTES = 1_000;
/**
 * Upper bound for the difference between the clocks of two functions. Below it, the time of an event and the time at which the delay was
 * changed do not show which was first.
 */
const CLOCK_SKEW_MS = 60_000;
const KEPT_LONGER_SECONDS = 2 * 86_400;

/**
 * Adds the event to the open window or opens one, in one transaction. If a sender closes the window at the same time, either its body
 * includes the event, or the event opens a new window. Returns the delivery if the caller must queue a message.
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
 * Returns true if the event was already published with another delay. Events with and without a delay have different keys, so a repetition
 * would not find the first publication, and would be delivered twice. The table is read only for events that may be older than the last
 * change of the delay.
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
  // The delivery's message is in the message group of bulk jobs and may wait there. An ordinary event must not wait. The delivery therefore
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
    // The entry's key has the delivery's id: with the event's id, the windows that one event opens would conflict in one entry.
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

/** Returns true if the write failed because the event was already published. */
const isRepeated = (error: unknown): boolean =>
  error instanceof ConditionFailed &&
  error.failed.some(({ item }) => item?.type === "windowEvent" || item?.type === "delivery");

/** Returns the delivery if its first attempt has not begun: the function that created it may have been killed before it queued it. */
function needingMessage(item: unknown): StoredDelivery | undefined {
  const delivery = item === undefined ? undefined : StoredDelivery.parse(item);
  return delivery?.state === "waiting" && delivery.attempt === 1 ? delivery : undefined;
}
