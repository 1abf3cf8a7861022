/**
 * Records of the table's stream -> events -> deliveries -> queue messages, many at a time. Repeating a record, in whatever
 * company, changes nothing: ids are deterministic, rows are written once, and a second message finds its attempt already made.
 */
import * as z from "zod/mini";
import { allEnded, inTurn } from "#shared/all-ended.ts";
import { type Dictionary, loadDictionary } from "#shared/companies/dictionary.ts";
import type { Item, Table } from "#shared/db/table.ts";
import { keepEventData } from "#shared/deliveries/event-data.ts";
import { fanOutMessage } from "#shared/deliveries/schema.ts";
import { appointmentEvents, noteEvents } from "#shared/events/attached-events.ts";
import type { DomainEvent } from "#shared/events/catalogue.ts";
import { beginFanOut } from "#shared/events/fan-out.ts";
import { importEvents } from "#shared/events/import-events.ts";
import { type KeptEvent, matchingRegistrations } from "#shared/events/matching.ts";
import { prospectEvents } from "#shared/events/prospect-events.ts";
import { tell } from "#shared/events/tell.ts";
import { territoryEvents } from "#shared/events/territory-events.ts";
import type { EventWorld } from "#shared/events/world.ts";
import { limits } from "#shared/limits.ts";
import { log } from "#shared/log.ts";
import { Id } from "#shared/schema.ts";
import { StoredTerritory } from "#shared/territories/schema.ts";
import type { StoredRegistration } from "#shared/webhooks/schema.ts";
import { readWebhooks, type WebhookRows } from "#shared/webhooks/webhooks.ts";

/** Types of rows that events come of: the stream leaves out all others. What a removed row meant was told when it was hidden. */
export const publishedTypes = ["prospect", "note", "appointment", "territory", "import"] as const;

/** A row before and after a write; absent when it was made or removed. */
export interface RowChange {
  readonly before: Item | undefined;
  readonly after: Item | undefined;
}

/** What is read once per batch and company. Read after the batch was: no registration made before its events is missed. */
export interface BatchReads {
  readonly dictionary: (companyId: number) => Promise<Dictionary>;
  readonly webhooks: (companyId: number) => Promise<WebhookRows[]>;
}

export function batchReads({ table }: EventWorld): BatchReads {
  return {
    dictionary: once((companyId) => loadDictionary(table, companyId)),
    webhooks: once((companyId) => readWebhooks(table, companyId)),
  };
}

/** What every published row says of itself. */
const Owned = z.object({ companyId: Id, id: Id });

type EventsOf = (table: Table, change: RowChange, dictionary: Dictionary) => Promise<DomainEvent[]>;

const eventsOf: Record<(typeof publishedTypes)[number], EventsOf> = {
  prospect: prospectEvents,
  note: noteEvents,
  appointment: appointmentEvents,
  territory: async (_, { before, after }) =>
    territoryEvents(before === undefined ? undefined : StoredTerritory.parse(before), StoredTerritory.parse(after)),
  import: async (_, { before, after }) => importEvents(before, after),
};

/** An event and all registrations that want it. */
interface Wanted {
  readonly event: DomainEvent;
  readonly registrations: readonly StoredRegistration[];
}

/** Events whose rows are on their way at once: the largest ones have a quarter of a megabyte. */
const PARALLEL = 8;

/**
 * What it writes for an event is bounded, however many registrations want it and however large it is: its data once, and either a
 * few deliveries or one row from which the queue makes them.
 */
export async function publishChanges(
  world: EventWorld,
  reads: BatchReads,
  changes: readonly RowChange[],
): Promise<void> {
  const wanted = (await allEnded(changes.map((change) => wantedOf(world, reads, change)))).flat();
  const { direct, many } = divided(wanted);
  const told = await inTurn(direct, PARALLEL, async ({ event, registrations }) => {
    const kept = await keptEvent(world, event);
    return registrations.map((registration) => ({ event: kept, registration }));
  });
  await tell(world, told.flat());
  const begun = await inTurn(many, PARALLEL, async ({ event, registrations }) =>
    (await beginFanOut(world, event, registrations)) ? [event.companyId] : [],
  );
  const messages = [...new Set(begun.flat())].map((companyId) => fanOutMessage(companyId));
  if (messages.length > 0) await world.queue.send(messages.map((message) => ({ message, delaySeconds: 0 })));
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
async function keptEvent({ table, clock }: EventWorld, event: DomainEvent): Promise<KeptEvent> {
  const text = JSON.stringify(event.data);
  const bytes = Buffer.byteLength(text);
  const data =
    bytes <= limits.inlineDataBytes
      ? { bytes, text }
      : { bytes: await keepEventData(table, event, text, clock.now()), text: undefined };
  return { ...event, data };
}

async function wantedOf(world: EventWorld, reads: BatchReads, change: RowChange): Promise<Wanted[]> {
  const type = publishedTypes.find((published) => published === change.after?.type);
  if (type === undefined) return [];
  const { companyId, id } = Owned.parse(change.after);
  const webhooks = await reads.webhooks(companyId);
  if (webhooks.length === 0) return [];
  const events = await eventsOf[type](world.table, change, await reads.dictionary(companyId));
  const wanted = events
    .map((event) => ({ event, registrations: matchingRegistrations(event, webhooks) }))
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
