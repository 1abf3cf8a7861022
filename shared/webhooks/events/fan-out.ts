/**
 * An event with many matches is one row, whatever their number: its matches as they were, and how to tell of it. The queue makes its
 * deliveries from that, in parts (expand.ts), while the stream goes on with other companies.
 */
import * as z from "zod/mini";
import { bothEnded } from "#shared/all-ended.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { ledgerKeys } from "#shared/db/expected-keys.ts";
import { absent } from "#shared/db/expression.ts";
import { fanOutKeys } from "#shared/db/fan-out-keys.ts";
import type { Item } from "#shared/db/item.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { Id, Timestamp } from "#shared/schema.ts";
import { eventDataExpiry, keepEventData } from "#shared/webhooks/event-data.ts";
import type { DomainEvent } from "#shared/webhooks/events/catalogue.ts";
import type { KeptEvent, Wanting } from "#shared/webhooks/events/matching.ts";
import { FanOutEntry } from "#shared/webhooks/expected-deliveries.ts";

/** Webhook, registration, its delay in minutes and since when it has that one: as they were when the event was published. */
const Matches = z.array(z.tuple([Id, Id, z.int(), z.nullable(Timestamp)]));

/** No time to live: it goes when the deliveries are made. */
export const StoredFanOut = z.object({
  type: z.literal("fanOut"),
  companyId: Id,
  eventId: z.string(),
  event: z.string(),
  recordId: Id,
  version: z.int(),
  createdAt: Timestamp,
  /** Of the event's data, which has a row of its own. */
  bytes: z.int(),
  count: z.int(),
  matches: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
  dueShard: z.string(),
  dueAt: Timestamp,
});
export type StoredFanOut = z.infer<typeof StoredFanOut>;

/** Gives whether the event still needs somebody to make its deliveries. One that was begun before stays as it was then. */
export async function beginFanOut(
  { table, clock }: EventContext,
  event: DomainEvent,
  registrations: readonly Wanting[],
): Promise<boolean> {
  const { id: eventId, companyId, createdAt, recordId, version, data } = event;
  const now = clock.now();
  const count = registrations.length;
  const expiresAt = eventDataExpiry(createdAt, now);
  const entry = { type: "fanOut", companyId, eventId, createdAt, count, expiresAt };
  const enter = putWhereNone(table, { ...ledgerKeys.fanOut(companyId, createdAt.slice(0, 10), eventId), ...entry });
  // Both before the row itself: what is entered and neither there nor done has been lost.
  const [bytes, standing] = await bothEnded(keepEventData(table, event, JSON.stringify(data), now), enter);
  if (standing !== undefined && FanOutEntry.parse(standing).doneAt !== undefined) return false;
  const matches = registrations.map(({ webhookId, id, delayMinutes, delayChangedAt }) => [
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
  await putWhereNone(table, { ...fanOutKeys.fanOut(companyId, createdAt, eventId), ...row });
  return true;
}

/** Gives what stands there. */
async function putWhereNone(table: Table, put: Key & Item): Promise<Item | undefined> {
  try {
    await table.write({ put, when: absent });
    return undefined;
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    return error.failed[0]?.item;
  }
}

export const wantingOf = ({ companyId, matches }: StoredFanOut): Wanting[] =>
  unpacked(Matches, matches).map(([webhookId, id, delayMinutes, delayChangedAt]) => ({
    companyId,
    webhookId,
    id,
    delayMinutes,
    ...(delayChangedAt !== null && { delayChangedAt }),
  }));

export const eventOfFanOut = ({ eventId, bytes, ...told }: StoredFanOut): KeptEvent => ({
  id: eventId,
  event: told.event,
  companyId: told.companyId,
  recordId: told.recordId,
  version: told.version,
  createdAt: told.createdAt,
  data: { bytes, text: undefined },
});
