/**
 * Records of the table's stream -> events -> deliveries -> queue messages, many at a time. Repeating a record, in whatever
 * company, changes nothing: ids are deterministic, rows are written once, and a second message finds its attempt already made.
 */
import * as z from "zod/mini";
import { allEnded } from "#shared/all-ended.ts";
import { type Dictionary, loadDictionary } from "#shared/companies/dictionary.ts";
import type { Item, Table } from "#shared/db/table.ts";
import { ledgerWrites } from "#shared/deliveries/ledger.ts";
import { deliveryItem, messageFor, StoredDelivery } from "#shared/deliveries/schema.ts";
import { appointmentEvents, noteEvents } from "#shared/events/attached-events.ts";
import type { DomainEvent } from "#shared/events/catalogue.ts";
import { importEvents } from "#shared/events/import-events.ts";
import { deliveryFor, matchingRegistrations } from "#shared/events/matching.ts";
import { prospectEvents } from "#shared/events/prospect-events.ts";
import { territoryEvents } from "#shared/events/territory-events.ts";
import { tellInWindow, toldOtherwise, windowOf } from "#shared/events/windows.ts";
import type { EventWorld } from "#shared/events/world.ts";
import { log } from "#shared/log.ts";
import { delaySecondsUntil } from "#shared/queue.ts";
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

/** An event and a registration that wants it. */
interface Match {
  readonly event: DomainEvent;
  readonly registration: StoredRegistration;
}

export async function publishChanges(
  world: EventWorld,
  reads: BatchReads,
  changes: readonly RowChange[],
): Promise<void> {
  const matches = (await allEnded(changes.map((change) => matchesOf(world, reads, change)))).flat();
  const isTold = await allEnded(matches.map((match) => toldOtherwise(world.table, match.event, match.registration)));
  const untold = matches.filter((_, i) => isTold[i] === false);
  const isDelayed = ({ registration }: Match): boolean => registration.delayMinutes > 0;
  const waiting = [
    ...(await tellAtOnce(
      world,
      untold.filter((match) => !isDelayed(match)),
    )),
    ...(await tellInWindows(world, untold.filter(isDelayed))),
  ];
  const now = world.clock.now();
  await world.queue.send(
    waiting.map((delivery) => ({
      message: messageFor(delivery),
      delaySeconds: delaySecondsUntil(Date.parse(delivery.dueAt), now),
    })),
  );
}

async function matchesOf(world: EventWorld, reads: BatchReads, change: RowChange): Promise<Match[]> {
  const type = publishedTypes.find((published) => published === change.after?.type);
  if (type === undefined) return [];
  const { companyId, id } = Owned.parse(change.after);
  const webhooks = await reads.webhooks(companyId);
  if (webhooks.length === 0) return [];
  const events = await eventsOf[type](world.table, change, await reads.dictionary(companyId));
  const matches = events.flatMap((event) =>
    matchingRegistrations(event, webhooks).map((registration) => ({ event, registration })),
  );
  if (matches.length > 0) log.info("published", { companyId, type, id, matches: matches.length });
  return matches;
}

/** Gives the deliveries that still need their first message: of one that was there before, none may have been sent. */
async function tellAtOnce({ table, timeScale }: EventWorld, matches: readonly Match[]): Promise<StoredDelivery[]> {
  const made = new Map(
    matches.map(({ event, registration }) => {
      const delivery = deliveryFor(event, registration, timeScale);
      return [delivery.id, delivery] as const;
    }),
  );
  const deliveries = [...made.values()];
  // Before the deliveries themselves: what is entered and not there has been lost. A window's is entered as it is opened.
  await allEnded(ledgerWrites(deliveries).map((write) => table.write(write)));
  const standing = await table.insert(deliveries.map((delivery) => ({ ...deliveryItem(delivery), id: delivery.id })));
  if (standing.length === 0) return deliveries;
  for (const { id } of standing) made.delete(id);
  const rows = (await table.batchGet(standing)).map((row) => StoredDelivery.parse(row));
  return [...made.values(), ...rows.filter(({ state, attempt }) => state === "waiting" && attempt === 1)];
}

/** Events of one window in their order, different windows at the same time. Gives likewise. */
async function tellInWindows({ table, timeScale }: EventWorld, matches: readonly Match[]): Promise<StoredDelivery[]> {
  const windows = Map.groupBy(matches, ({ event, registration }) => windowOf(event, registration).sk);
  const opened = [...windows.values()].map(async (events) => {
    const deliveries: StoredDelivery[] = [];
    for (const { event, registration } of events) {
      const delivery = await tellInWindow(table, event, registration, timeScale);
      if (delivery !== undefined) deliveries.push(delivery);
    }
    return deliveries;
  });
  return (await allEnded(opened)).flat();
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
