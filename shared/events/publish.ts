/**
 * One record of the table's stream -> events -> deliveries -> queue messages. Repeating a record changes nothing: ids are
 * deterministic, rows are written once, and a second message finds its attempt already made.
 */
import * as z from "zod/mini";
import { type Dictionary, loadDictionary } from "#shared/companies/dictionary.ts";
import { ConditionFailed } from "#shared/db/errors.ts";
import { absent } from "#shared/db/expression.ts";
import type { Item, Table } from "#shared/db/table.ts";
import { ledgerWrite } from "#shared/deliveries/ledger.ts";
import { deliveryItem, messageFor, StoredDelivery } from "#shared/deliveries/schema.ts";
import { appointmentEvents, noteEvents } from "#shared/events/attached-events.ts";
import type { DomainEvent } from "#shared/events/catalogue.ts";
import { importEvents } from "#shared/events/import-events.ts";
import { deliveryFor, matchingRegistrations } from "#shared/events/matching.ts";
import { prospectEvents } from "#shared/events/prospect-events.ts";
import { territoryEvents } from "#shared/events/territory-events.ts";
import { tellInWindow, toldOtherwise } from "#shared/events/windows.ts";
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

export async function publishChange(world: EventWorld, reads: BatchReads, change: RowChange): Promise<void> {
  const type = publishedTypes.find((published) => published === change.after?.type);
  if (type === undefined) return;
  const { companyId, id } = Owned.parse(change.after);
  const webhooks = await reads.webhooks(companyId);
  if (webhooks.length === 0) return;
  const events = await eventsOf[type](world.table, change, await reads.dictionary(companyId));
  const told = await Promise.all(events.map((event) => tell(world, event, matchingRegistrations(event, webhooks))));
  const waiting = told.flat().filter((delivery) => delivery !== undefined);
  const now = world.clock.now();
  await world.queue.send(
    waiting.map((delivery) => ({
      message: messageFor(delivery),
      delaySeconds: delaySecondsUntil(Date.parse(delivery.dueAt), now),
    })),
  );
  const matches = told.flat().length;
  if (matches > 0) log.info("published", { companyId, type, id, matches });
}

/** Gives the deliveries that still need their first message. */
async function tell(
  world: EventWorld,
  event: DomainEvent,
  matching: readonly StoredRegistration[],
): Promise<(StoredDelivery | undefined)[]> {
  const { table, timeScale } = world;
  const isTold = await Promise.all(matching.map((registration) => toldOtherwise(table, event, registration)));
  const untold = matching.filter((_, i) => isTold[i] === false);
  const delayed = untold.filter(({ delayMinutes }) => delayMinutes > 0);
  const prompt = untold.filter(({ delayMinutes }) => delayMinutes === 0);
  const deliveries = prompt.map((registration) => deliveryFor(event, registration, timeScale));
  await enter(world, deliveries);
  return Promise.all([
    ...delayed.map((registration) => tellInWindow(table, event, registration, timeScale)),
    ...deliveries.map((delivery) => record(table, delivery)),
  ]);
}

/** Before the deliveries themselves: what is entered and not there has been lost. A window's is entered as it is opened. */
async function enter({ table }: EventWorld, [first, ...more]: readonly StoredDelivery[]): Promise<void> {
  if (first !== undefined) await table.write(ledgerWrite([first, ...more]));
}

/** Writes the delivery unless it is there. Gives it when it still needs its first message: none may have been sent. */
async function record(table: Table, delivery: StoredDelivery): Promise<StoredDelivery | undefined> {
  try {
    await table.write({ put: deliveryItem(delivery), when: absent });
    return delivery;
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    const standing = StoredDelivery.parse(error.failed[0]?.item);
    return standing.state === "waiting" && standing.attempt === 1 ? standing : undefined;
  }
}

function once<T>(load: (companyId: number) => Promise<T>): (companyId: number) => Promise<T> {
  const loaded = new Map<number, Promise<T>>();
  return (companyId) => {
    const known = loaded.get(companyId) ?? load(companyId);
    loaded.set(companyId, known);
    return known;
  };
}
