/** Publishes the events of stream records. All ids are derived from the record, so a repeated record makes no second delivery. */
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from "aws-lambda";
import * as z from "zod/mini";
import { allEnded, mapConcurrently } from "#shared/all-ended.ts";
import { at } from "#shared/at.ts";
import { messageGroup } from "#shared/aws/sqs.ts";
import type { EventContext } from "#shared/context.ts";
import { itemOfImage } from "#shared/db/stream-image.ts";
import { ConditionFailed, isTransient, NewerShape } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log, withLogContext } from "#shared/log.ts";
import { type Dictionary, loadDictionary } from "#shared/reference/dictionary.ts";
import { Id } from "#shared/schema.ts";
import type { DomainEvent } from "#shared/webhooks/catalogue.ts";
import { keepEventData } from "#shared/webhooks/event-data.ts";
import { emit } from "#shared/webhooks/events/emit.ts";
import { startFanOuts } from "#shared/webhooks/events/fan-out.ts";
import {
  currentSubscriptions,
  matchingSubscriptions,
  type PublishedEvent,
  type Subscription,
  type Subscriptions,
} from "#shared/webhooks/events/matching.ts";
import { COPIED_FROM_BACKUP_AT, eventsOf, publishedTypes, type RowChange } from "#shared/webhooks/events/row-events.ts";
import { fanOutMessage } from "#shared/webhooks/messages.ts";

const TOGETHER = 25;

/** After a transient fault, Lambda repeats the batch from the failed record. Poison records go to a queue for operators. */
export function publishStream(
  context: () => EventContext,
): (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse> {
  return async ({ Records }) => {
    const reads = batchReads(context());
    for (let first = 0; first < Records.length; first += TOGETHER) {
      const failed = await publishTogether(context(), reads, Records.slice(first, first + TOGETHER));
      if (failed !== undefined) return { batchItemFailures: [{ itemIdentifier: failed }] };
    }
    return { batchItemFailures: [] };
  };
}

/** Publishes the records together. If this fails, it publishes them one by one to find the faulty record. */
async function publishTogether(
  context: EventContext,
  reads: BatchReads,
  records: readonly DynamoDBRecord[],
): Promise<string | undefined> {
  try {
    await publishChanges(context, reads, records.map(changeOf));
    return undefined;
  } catch (error) {
    log.warn("records failed together", { records: records.length, ...errorFields(error) });
  }
  for (const record of records) {
    const sequenceNumber = String(record.dynamodb?.SequenceNumber);
    try {
      await withLogContext({ sequenceNumber }, () => publishOne(context, reads, record));
    } catch (error) {
      log.warn("record failed", { sequenceNumber, ...errorFields(error) });
      return sequenceNumber;
    }
  }
  return undefined;
}

async function publishOne(context: EventContext, reads: BatchReads, record: DynamoDBRecord): Promise<void> {
  try {
    await publishChanges(context, reads, [changeOf(record)]);
  } catch (error) {
    // Before a rollback, a newer release may have written a row that this release cannot read. The row must not block the stream, and
    // operators can publish its record when the newer release runs again.
    const isNewer = error instanceof NewerShape;
    if (!isNewer && (isTransient(error) || error instanceof ConditionFailed)) throw error;
    log.error("poison record stored", errorFields(error));
    await context.savePoisonRecord(record, error instanceof Error ? error.name : "unknown");
  }
}

const changeOf = ({ dynamodb }: DynamoDBRecord): RowChange => ({
  before: dynamodb?.OldImage && itemOfImage(dynamodb.OldImage),
  after: dynamodb?.NewImage && itemOfImage(dynamodb.NewImage),
});

/** Reads a company's data once for a batch, after the batch has arrived, so that it has all registrations older than the events. */
interface BatchReads {
  readonly dictionary: (companyId: number) => Promise<Dictionary>;
  readonly subscriptions: (companyId: number) => Promise<Subscriptions>;
}

export function batchReads(context: EventContext): BatchReads {
  return {
    dictionary: once((companyId) => loadDictionary(context.table, companyId)),
    subscriptions: once((companyId) => currentSubscriptions(context, companyId)),
  };
}

/** Returns a function that loads the data of a company once. After a failure, the next call loads again. */
function once<T>(load: (companyId: number) => Promise<T>): (companyId: number) => Promise<T> {
  const loaded = new Map<number, Promise<T>>();
  return (companyId) => {
    const known = loaded.get(companyId) ?? load(companyId);
    loaded.set(companyId, known);
    known.catch(() => loaded.delete(companyId));
    return known;
  };
}

interface Matched {
  readonly event: DomainEvent;
  readonly subscribers: readonly Subscription[];
}

/** Maximum number of events that are written concurrently. It limits the memory, because an event may be 250 KB large. */
const PARALLEL = 8;

/** Publishes the events of changed rows. An event with many matches is fanned out, so the publisher makes few writes for it. */
export async function publishChanges(
  context: EventContext,
  reads: BatchReads,
  changes: readonly RowChange[],
): Promise<void> {
  const matched = (await allEnded(changes.map((change) => matchedEvents(context, reads, change)))).flat();
  const { direct, fannedOut } = divide(matched);
  const matches = await mapConcurrently(direct, PARALLEL, async (one) => {
    const event = await withStoredData(context, one);
    return one.subscribers.map((subscriber) => ({ event, subscriber }));
  });
  await emit(context, matches.flat());
  const lanes = [...Map.groupBy(fannedOut, ({ event }) => messageGroup(event)).values()];
  const messages = await mapConcurrently(lanes, PARALLEL, async (ofLane) => {
    const { companyId, isBulk } = at(ofLane, 0).event;
    const events = await mapConcurrently(ofLane, PARALLEL, async (one) => ({
      event: await withStoredData(context, one),
      subscribers: one.subscribers,
    }));
    await startFanOuts(context, { companyId, isBulk }, events);
    return fanOutMessage({ companyId, isBulk });
  });
  if (messages.length > 0) await context.queue.send(messages.map((message) => ({ message, delaySeconds: 0 })));
}

/**
 * Divides the events. `fannedOut` gets the events of bulk jobs, events with many matches, and events with which a company would have more
 * matches in `direct` than the publisher may handle itself. This prevents one company from delaying the stream.
 */
function divide(matched: readonly Matched[]): Record<"direct" | "fannedOut", Matched[]> {
  const room = new Map<number, number>();
  const { direct = [], fannedOut = [] } = Object.groupBy(matched, ({ event: { companyId, isBulk }, subscribers }) => {
    const left = room.get(companyId) ?? limits.directMatchesTogether;
    if (isBulk || subscribers.length > Math.min(limits.directMatches, left)) return "fannedOut";
    room.set(companyId, left - subscribers.length);
    return "direct";
  });
  return { direct, fannedOut };
}

/** Maximum bytes of data in a delivery's row. Larger data has one row for all deliveries, because each change writes a whole row again. */
const INLINE_BYTES = 4_096;

/** Stores the data of an event in its own row if it is large or the event has many matches. Otherwise, the result contains the data. */
async function withStoredData(
  { table, clock }: EventContext,
  { event, subscribers }: Matched,
): Promise<PublishedEvent> {
  const text = JSON.stringify(event.data);
  const bytes = Buffer.byteLength(text);
  if (bytes <= INLINE_BYTES && subscribers.length <= limits.directMatches) return { ...event, data: { bytes, text } };
  return { ...event, data: { bytes: await keepEventData(table, event, text, clock.now()), text: undefined } };
}

const isCopiedFromBackup = ({ before, after }: RowChange): boolean =>
  after?.[COPIED_FROM_BACKUP_AT] !== undefined && after[COPIED_FROM_BACKUP_AT] !== before?.[COPIED_FROM_BACKUP_AT];

/** A key ring, the row with the API keys of a service account, has a text as its id. */
const Owned = z.object({ companyId: Id, id: z.union([Id, z.string()]) });

async function matchedEvents(context: EventContext, reads: BatchReads, change: RowChange): Promise<Matched[]> {
  const type = publishedTypes.find((published) => published === change.after?.type);
  if (type === undefined || isCopiedFromBackup(change)) return [];
  const { companyId, id } = Owned.parse(change.after);
  const subscriptions = await reads.subscriptions(companyId);
  if (subscriptions.size === 0) return [];
  const events = await eventsOf[type](context.table, change, () => reads.dictionary(companyId));
  const matched = events
    .map((event) => ({ event, subscribers: matchingSubscriptions(event, subscriptions) }))
    .filter(({ subscribers }) => subscribers.length > 0);
  const matches = matched.reduce((sum, { subscribers }) => sum + subscribers.length, 0);
  if (matches > 0) log.info("published", { companyId, type, id, matches });
  return matched;
}
