/**
 * One record of the table's stream -> events -> deliveries -> queue messages. Repeating a record changes nothing: ids are
 * deterministic, rows are written once, and a second message finds its attempt already made.
 */
import { type Dictionary, loadDictionary } from "#shared/companies/dictionary.ts";
import { ConditionFailed } from "#shared/db/errors.ts";
import { absent } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Item } from "#shared/db/table.ts";
import { messageFor, StoredDelivery } from "#shared/deliveries/schema.ts";
import type { DomainEvent } from "#shared/events/catalogue.ts";
import { deliveryFor, matchingRegistrations } from "#shared/events/matching.ts";
import { prospectEvents } from "#shared/events/prospect-events.ts";
import { territoryEvents } from "#shared/events/territory-events.ts";
import type { EventWorld } from "#shared/events/world.ts";
import { log } from "#shared/log.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";
import { delaySecondsUntil } from "#shared/queue.ts";
import { StoredTerritory } from "#shared/territories/schema.ts";
import { readWebhooks, type WebhookRows } from "#shared/webhooks/webhooks.ts";

/** A row before and after a write; absent when it was made or removed. */
export interface RowChange {
  readonly before: Item | undefined;
  readonly after: Item | undefined;
}

/** What became of a row that has been parsed. The events are made only where the company has webhooks. */
interface ParsedChange {
  readonly id: number;
  readonly companyId: number;
  readonly events: (reads: BatchReads) => Promise<DomainEvent[]>;
}

/** Type of row -> its events. A parser knows its row and the one before it. */
const readers = {
  prospect: (change: RowChange): ParsedChange => {
    const after = StoredProspect.parse(change.after);
    const before = change.before === undefined ? undefined : StoredProspect.parse(change.before);
    const { id, companyId } = after;
    return { id, companyId, events: async (reads) => prospectEvents(before, after, await reads.dictionary(companyId)) };
  },
  territory: (change: RowChange): ParsedChange => {
    const after = StoredTerritory.parse(change.after);
    const before = change.before === undefined ? undefined : StoredTerritory.parse(change.before);
    const { id, companyId } = after;
    return { id, companyId, events: async () => territoryEvents(before, after) };
  },
} as const;

/** Types of rows that events come of: the stream leaves out all others. What a removed row meant was told when it was hidden. */
export const publishedTypes = ["prospect", "territory"] as const satisfies readonly (keyof typeof readers)[];

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

export async function publishChange(world: EventWorld, reads: BatchReads, change: RowChange): Promise<void> {
  const type = publishedTypes.find((name) => name === change.after?.type);
  if (type === undefined) return;
  const { id, companyId, events: made } = readers[type](change);
  const webhooks = await reads.webhooks(companyId);
  if (webhooks.length === 0) return;
  const events = await made(reads);
  const deliveries = events.flatMap((event) =>
    matchingRegistrations(event, webhooks).map((registration) => deliveryFor(event, registration, world.timeScale)),
  );
  const waiting = (await Promise.all(deliveries.map((delivery) => record(world, delivery)))).filter(
    (delivery) => delivery !== undefined,
  );
  const now = world.clock.now();
  await world.queue.send(
    waiting.map((delivery) => ({
      message: messageFor(delivery),
      delaySeconds: delaySecondsUntil(Date.parse(delivery.dueAt), now),
    })),
  );
  if (deliveries.length > 0) {
    log.info("published", { companyId, type, id, deliveries: deliveries.length });
  }
}

/** Writes the delivery unless it is there. Gives it when it still needs its first message: none may have been sent. */
async function record({ table }: EventWorld, delivery: StoredDelivery): Promise<StoredDelivery | undefined> {
  const { companyId, webhookId, id } = delivery;
  try {
    await table.write({ put: { ...keys.delivery(companyId, webhookId, id), ...delivery }, when: absent });
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
