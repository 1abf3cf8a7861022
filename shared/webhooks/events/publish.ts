/**
 * Records of the table's stream -> events -> deliveries -> queue messages, many at a time. Repeating a record, in whatever
 * company, changes nothing: ids are deterministic, rows are written once, and a second message finds its attempt already made.
 */
import * as z from "zod/mini";
import { allEnded, inTurn } from "#shared/all-ended.ts";
import type { EventContext } from "#shared/context.ts";
import type { Table } from "#shared/db/table.ts";
import { limits } from "#shared/limits.ts";
import { log } from "#shared/log.ts";
import { type Dictionary, loadDictionary } from "#shared/reference/dictionary.ts";
import { Id } from "#shared/schema.ts";
import { StoredTerritory } from "#shared/territories/territories.ts";
import { fanOutMessage } from "#shared/webhooks/delivery.ts";
import { keepEventData } from "#shared/webhooks/event-data.ts";
import { appointmentEvents, noteEvents } from "#shared/webhooks/events/attached-events.ts";
import type { DomainEvent } from "#shared/webhooks/events/catalogue.ts";
import { tell } from "#shared/webhooks/events/emit.ts";
import { beginFanOut } from "#shared/webhooks/events/fan-out.ts";
import { importEvents } from "#shared/webhooks/events/import-events.ts";
import { type KeptEvent, matchingRegistrations } from "#shared/webhooks/events/matching.ts";
import { prospectEvents } from "#shared/webhooks/events/prospect-events.ts";
import type { RowChange } from "#shared/webhooks/events/row-change.ts";
import {
  currentSubscriptions,
  type Subscription,
  type Subscriptions,
} from "#shared/webhooks/events/subscriptions-cache.ts";
import { territoryEvents } from "#shared/webhooks/events/territory-events.ts";

/** Types of rows that events come of: the stream leaves out all others. What a removed row meant was told when it was hidden. */
export const publishedTypes = ["prospect", "note", "appointment", "territory", "import"] as const;

/** What is read once per batch and company. Read after the batch was: no registration made before its events is missed. */
export interface BatchReads {
  readonly dictionary: (companyId: number) => Promise<Dictionary>;
  readonly subscriptions: (companyId: number) => Promise<Subscriptions>;
}

export function batchReads(context: EventContext): BatchReads {
  return {
    dictionary: once((companyId) => loadDictionary(context.table, companyId)),
    subscriptions: once((companyId) => currentSubscriptions(context, companyId)),
  };
}

/** What every published row says of itself. */
const Owned = z.object({ companyId: Id, id: Id });

type EventsOf = (table: Table, change: RowChange, dictionary: () => Promise<Dictionary>) => Promise<DomainEvent[]>;

const eventsOf: Record<(typeof publishedTypes)[number], EventsOf> = {
  prospect: async (table, change, dictionary) => prospectEvents(table, change, await dictionary()),
  note: async (table, change, dictionary) => noteEvents(table, change, await dictionary()),
  appointment: async (table, change, dictionary) => appointmentEvents(table, change, await dictionary()),
  territory: async (_, { before, after }) =>
    territoryEvents(before === undefined ? undefined : StoredTerritory.parse(before), StoredTerritory.parse(after)),
  import: async (_, { before, after }) => importEvents(before, after),
};

/** An event and all registrations that want it. */
interface Wanted {
  readonly event: DomainEvent;
  readonly registrations: readonly Subscription[];
}

/** Events whose rows are on their way at once: the largest ones have a quarter of a megabyte. */
const PARALLEL = 8;

/**
 * What it writes for an event is bounded, however many registrations want it and however large it is: its data once, and either a
 * few deliveries or one row from which the queue makes them.
 */
export async function publishChanges(
  context: EventContext,
  reads: BatchReads,
  changes: readonly RowChange[],
): Promise<void> {
  const wanted = (await allEnded(changes.map((change) => wantedOf(context, reads, change)))).flat();
  const { direct, many } = divided(wanted);
  const told = await inTurn(direct, PARALLEL, async ({ event, registrations }) => {
    const kept = await keptEvent(context, event);
    return registrations.map((registration) => ({ event: kept, registration }));
  });
  await tell(context, told.flat());
  const begun = await inTurn(many, PARALLEL, async ({ event, registrations }) =>
    (await beginFanOut(context, event, registrations)) ? [event.companyId] : [],
  );
  const messages = [...new Set(begun.flat())].map((companyId) => fanOutMessage(companyId));
  if (messages.length > 0) await context.queue.send(messages.map((message) => ({ message, delaySeconds: 0 })));
}

/** Events with few matches are told at once, as far as their company has room for them; `many`: the others. */
function divided(wanted: readonly Wanted[]): { direct: Wanted[]; many: Wanted[] } {
  const room = new Map<number, number>();
  const { direct = [], many = [] } = Object.groupBy(wanted, ({ event: { companyId }, registrations }) => {
    const left = room.get(companyId) ?? limits.directMatchesTogether;
    if (registrations.length > Math.min(limits.directMatches, left)) return "many";
    room.set(companyId, left - registrations.length);
    return "direct";
  });
  return { direct, many };
}

/** Much data is kept in a row of its own. */
async function keptEvent({ table, clock }: EventContext, event: DomainEvent): Promise<KeptEvent> {
  const text = JSON.stringify(event.data);
  const bytes = Buffer.byteLength(text);
  const data =
    bytes <= limits.inlineDataBytes
      ? { bytes, text }
      : { bytes: await keepEventData(table, event, text, clock.now()), text: undefined };
  return { ...event, data };
}

async function wantedOf(context: EventContext, reads: BatchReads, change: RowChange): Promise<Wanted[]> {
  const type = publishedTypes.find((published) => published === change.after?.type);
  if (type === undefined) return [];
  const { companyId, id } = Owned.parse(change.after);
  const subscriptions = await reads.subscriptions(companyId);
  if (subscriptions.size === 0) return [];
  const events = await eventsOf[type](context.table, change, () => reads.dictionary(companyId));
  const wanted = events
    .map((event) => ({ event, registrations: matchingRegistrations(event, subscriptions) }))
    .filter(({ registrations }) => registrations.length > 0);
  const matches = wanted.reduce((sum, { registrations }) => sum + registrations.length, 0);
  if (matches > 0) log.info("published", { companyId, type, id, matches });
  return wanted;
}

/** A read that failed is not remembered. */
function once<T>(load: (companyId: number) => Promise<T>): (companyId: number) => Promise<T> {
  const loaded = new Map<number, Promise<T>>();
  return (companyId) => {
    const known = loaded.get(companyId) ?? load(companyId);
    loaded.set(companyId, known);
    known.catch(() => loaded.delete(companyId));
    return known;
  };
}
