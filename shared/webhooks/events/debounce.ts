/**
 * Events of a registration with a delay: the first one of a record opens a window, which is one delivery, due at its time and
 * the delay; what happens to the record before then joins it. Windows go by the time of events, whenever they are told.
 */
import { iso } from "#shared/clock.ts";
import { type RecordPlace, windowKeys } from "#shared/db/debounce-keys.ts";
import { absent } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import {
  closing,
  eventBytes,
  StoredWindow,
  type StoredWindowEvent,
  unchanged,
} from "#shared/webhooks/debounce-window.ts";
import { deliveryItem, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { deliveryId } from "#shared/webhooks/delivery-id.ts";
import type { KeptEvent, Wanting } from "#shared/webhooks/events/matching.ts";
import { ledgerWrite } from "#shared/webhooks/expected-deliveries.ts";
import { withoutBody } from "#shared/webhooks/new-delivery.ts";
import { delayMs } from "#shared/webhooks/retry-plan.ts";

/** What a body says beside its events, at most. */
const ENVELOPE_BYTES = 1_000;
/** The clocks of two functions, at most. */
const CLOCKS_DIFFER_MS = 60_000;
/** A window and its events are forgotten after the delivery that tells them. */
const KEPT_LONGER_SECONDS = 2 * 86_400;

/**
 * Joins the window that is open, or opens the next one; an event that was told before changes nothing. Each is one
 * transaction: a window that closes meanwhile has the event or has it not. Gives the delivery that the event opened while
 * that still needs its first message.
 */
export function tellInWindow(
  table: Table,
  event: KeptEvent,
  registration: Wanting,
  timeScale: number,
): Promise<StoredDelivery | undefined> {
  const { companyId, webhookId } = registration;
  const place = placeOf(event, registration);
  const window = windowOf(event, registration);
  return optimistic(async () => {
    const item = await table.get(window);
    const open = item === undefined ? undefined : StoredWindow.parse(item);
    const step = stepOf(window, event, registration, timeScale, open);
    const told = windowKeys.event(place, event.version, event.event);
    try {
      await table.transact([{ put: { ...told, ...step.row }, when: absent }, ...step.writes]);
      return step.opened;
    } catch (error) {
      const standing = toldBefore(error);
      if (standing === undefined) throw error;
      return needsMessage(await table.get(keys.delivery(companyId, webhookId, ownId(event, registration))));
    }
  });
}

/**
 * Before its registration's delay was changed an event may have been told the other way: by itself, or in a window. Asked
 * for events of that time only, when the stream repeats them.
 */
export async function toldOtherwise(table: Table, event: KeptEvent, registration: Wanting): Promise<boolean> {
  const { companyId, webhookId, delayMinutes, delayChangedAt } = registration;
  const since = delayChangedAt === undefined ? 0 : Date.parse(delayChangedAt) + CLOCKS_DIFFER_MS;
  if (Date.parse(event.createdAt) > since) return false;
  const itself = keys.delivery(companyId, webhookId, ownId(event, registration));
  const inWindow = windowKeys.event(placeOf(event, registration), event.version, event.event);
  return (await table.get(delayMinutes > 0 ? itself : inWindow)) !== undefined;
}

interface Step {
  readonly row: StoredWindowEvent;
  readonly writes: readonly Write[];
  readonly opened: StoredDelivery | undefined;
}

function stepOf(
  window: Key,
  event: KeptEvent,
  registration: Wanting,
  timeScale: number,
  open: StoredWindow | undefined,
): Step {
  const row = rowOf(event, ownId(event, registration));
  const bytes = eventBytes(row, event.data.bytes);
  const isInTime = open !== undefined && event.createdAt < open.dueAt;
  if (isInTime && open.bytes + bytes + event.data.bytes + ENVELOPE_BYTES <= limits.windowBodyBytes) {
    return joining(window, open, row, bytes);
  }
  // A window that is full goes on in a further delivery, due at the same time.
  const dueAt = isInTime
    ? open.dueAt
    : iso(Date.parse(event.createdAt) + delayMs(registration.delayMinutes, timeScale));
  return opening(window, open, row, bytes, newWindowDelivery(event, registration, dueAt));
}

function joining(window: Key, open: StoredWindow, row: StoredWindowEvent, bytes: number): Step {
  const { deliveryId, expiresAt } = open;
  const next: StoredWindow = {
    ...open,
    eventCount: open.eventCount + 1,
    bytes: open.bytes + bytes,
    fromVersion: Math.min(open.fromVersion, row.version),
    toVersion: Math.max(open.toVersion, row.version),
  };
  const writes = [{ put: { ...window, ...next }, when: unchanged(open) }];
  return { row: { ...row, deliveryId, expiresAt }, writes, opened: undefined };
}

/** Takes the place of the window before, which is closed by that. */
function opening(
  window: Key,
  before: StoredWindow | undefined,
  row: StoredWindowEvent,
  bytes: number,
  opened: StoredDelivery,
): Step {
  const { id, dueAt } = opened;
  const expiresAt = opened.expiresAt + KEPT_LONGER_SECONDS;
  const versions = { fromVersion: row.version, toVersion: row.version };
  const own: StoredWindow = { type: "window", deliveryId: id, dueAt, eventCount: 1, bytes, ...versions, expiresAt };
  const writes: Write[] = [
    { put: { ...window, ...own }, when: before === undefined ? absent : unchanged(before) },
    { put: deliveryItem(opened), when: absent },
    // A row of its own in the ledger: two registrations may open windows with one event at the same time.
    ledgerWrite([{ ...opened, eventId: id }]),
    ...(before === undefined ? [] : [closing(opened, before)]),
  ];
  return { row: { ...row, expiresAt }, writes, opened };
}

function newWindowDelivery(event: KeptEvent, registration: Wanting, dueAt: string): StoredDelivery {
  const { companyId, webhookId, id: registrationId } = registration;
  const { id: eventId, createdAt, recordId } = event;
  const occasion = { id: ownId(event, registration), companyId, webhookId, registrationId, event: event.event };
  const due = { createdAt, dueMs: Date.parse(dueAt), trigger: "automatic", triggeredBy: null } as const;
  return { ...withoutBody({ ...occasion, eventId, ...due }), recordId };
}

const placeOf = ({ recordId }: KeptEvent, { companyId, webhookId, id }: Wanting): RecordPlace => ({
  companyId,
  webhookId,
  registrationId: id,
  recordId,
});

/** Where the window stands that the event joins or opens. */
export const windowOf = (event: KeptEvent, registration: Wanting): Key =>
  windowKeys.window(placeOf(event, registration));

/** The id of the delivery that the event would open, or have to itself. */
const ownId = (event: KeptEvent, { id }: Wanting): string => deliveryId(event.id, id, event.createdAt);

const rowOf = ({ id, recordId, version, event, createdAt, data }: KeptEvent, ownId: string): StoredWindowEvent => ({
  type: "windowEvent",
  deliveryId: ownId,
  ownId,
  eventId: id,
  recordId,
  version,
  event,
  createdAt,
  ...(data.text !== undefined && { data: data.text }),
  expiresAt: 0,
});

/** The row that stands where the event's own, or its delivery's, was to be written. */
function toldBefore(error: unknown): unknown {
  if (!(error instanceof ConditionFailed)) return undefined;
  return error.failed.find(({ item }) => item?.type === "windowEvent" || item?.type === "delivery")?.item;
}

/** Its first message may never have been sent. */
function needsMessage(item: unknown): StoredDelivery | undefined {
  const delivery = item === undefined ? undefined : StoredDelivery.parse(item);
  return delivery?.state === "waiting" && delivery.attempt === 1 ? delivery : undefined;
}
