/**
 * Publishes records of the table's stream: makes events from them, finds the matching subscriptions, and creates deliveries. Publishing a
 * record twice changes nothing, because all ids are derived from the record and a row is written only if it does not exist.
 */
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from "aws-lambda";
import * as z from "zod/mini";
import { allEnded, mapConcurrently } from "#shared/all-ended.ts";
import type { EventContext } from "#shared/context.ts";
import { itemOfImage } from "#shared/db/stream-image.ts";
import { ConditionFailed, isTransient, NewerShape } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log, withLogContext } from "#shared/log.ts";
import { type Dictionary, loadDictionary } from "#shared/reference/dictionary.ts";
import { Id } from "#shared/schema.ts";
import { keepEventData } from "#shared/webhooks/event-data.ts";
import type { DomainEvent } from "#shared/webhooks/events/catalogue.ts";
import { emit } from "#shared/webhooks/events/emit.ts";
import { startFanOut } from "#shared/webhooks/events/fan-out.ts";
import {
  currentSubscriptions,
  matchingSubscriptions,
  type PublishedEvent,
  type Subscription,
  type Subscriptions,
} from "#shared/webhooks/events/matching.ts";
import { eventsOf, publishedTypes, RESTORED_AT, type RowChange } from "#shared/webhooks/events/row-events.ts";
import { fanOutMessage } from "#shared/webhooks/messages.ts";

/** Number of records that are published together. One batch write of the table accepts 25 rows. */
const TOGETHER = 25;

/**
 * Handles a batch of stream records in order. If a fault is transient, Lambda repeats the batch from the failed record. A record that can
 * never be published is sent to a queue for operators, so that it does not block the stream.
 */
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

/**
 * Publishes the records together. If this fails, it publishes them one by one to find the faulty record. Publishing a record twice
 * changes nothing.
 */
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
    const sequenceNumber = record.dynamodb?.SequenceNumber ?? "";
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
    // A row of a later release would block the stream. The record is stored until that release runs again.
    const isNewer = error instanceof NewerShape;
    if (!isNewer && (isTransient(error) || error instanceof ConditionFailed)) throw error;
    log.error("poison record stored", errorFields(error));
    await context.park(record, error instanceof Error ? error.name : "unknown");
  }
}

const changeOf = ({ dynamodb }: DynamoDBRecord): RowChange => ({
  before: dynamodb?.OldImage && itemOfImage(dynamodb.OldImage),
  after: dynamodb?.NewImage && itemOfImage(dynamodb.NewImage),
});

/**
 * Data that is read once for each batch and company. It is read after the batch has arrived, so it contains every registration that is
 * older than the events.
 */
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

/**
 * Returns a function that loads the data of a company at the first call and then returns the same result. After a failure, the next call
 * loads again.
 */
function once<T>(load: (companyId: number) => Promise<T>): (companyId: number) => Promise<T> {
  const loaded = new Map<number, Promise<T>>();
  return (companyId) => {
    const known = loaded.get(companyId) ?? load(companyId);
    loaded.set(companyId, known);
    known.catch(() => loaded.delete(companyId));
    return known;
  };
}

interface MatchedEvent {
  readonly event: DomainEvent;
  readonly subscriptions: readonly Subscription[];
}

/** Maximum number of events that are written concurrently. It limits the memory, because an event may have 250 KB. */
const PARALLEL = 8;

/**
 * Publishes the events of changed rows. The number of writes for an event is limited. Its data is written once. Its matches become either
 * a few deliveries, or one row from which a consumer of the queue creates the deliveries later.
 */
export async function publishChanges(
  context: EventContext,
  reads: BatchReads,
  changes: readonly RowChange[],
): Promise<void> {
  const matched = (await allEnded(changes.map((change) => matchedEvents(context, reads, change)))).flat();
  const { direct, fannedOut } = divide(matched);
  const matches = await mapConcurrently(direct, PARALLEL, async ({ event, subscriptions }) => {
    const published = await withStoredData(context, event);
    return subscriptions.map((subscriber) => ({ event: published, subscriber }));
  });
  await emit(context, matches.flat());
  const started = await mapConcurrently(fannedOut, PARALLEL, async ({ event, subscriptions }) =>
    (await startFanOut(context, event, subscriptions)) ? [event.companyId] : [],
  );
  const messages = [...new Set(started.flat())].map((companyId) => fanOutMessage(companyId));
  if (messages.length > 0) await context.queue.send(messages.map((message) => ({ message, delaySeconds: 0 })));
}

/**
 * Separates the events whose deliveries the publisher creates itself from the events with many matches (fan-outs). The publisher creates
 * only a limited number of deliveries for each company, so that one company cannot delay the stream.
 */
function divide(matched: readonly MatchedEvent[]): { direct: MatchedEvent[]; fannedOut: MatchedEvent[] } {
  const room = new Map<number, number>();
  const { direct = [], fannedOut = [] } = Object.groupBy(matched, ({ event: { companyId }, subscriptions }) => {
    const left = room.get(companyId) ?? limits.directMatchesTogether;
    if (subscriptions.length > Math.min(limits.directMatches, left)) return "fannedOut";
    room.set(companyId, left - subscriptions.length);
    return "direct";
  });
  return { direct, fannedOut };
}

async function withStoredData({ table, clock }: EventContext, event: DomainEvent): Promise<PublishedEvent> {
  const text = JSON.stringify(event.data);
  const bytes = Buffer.byteLength(text);
  const data =
    bytes <= limits.inlineDataBytes
      ? { bytes, text }
      : { bytes: await keepEventData(table, event, text, clock.now()), text: undefined };
  return { ...event, data };
}

const isRestored = ({ before, after }: RowChange): boolean =>
  after?.[RESTORED_AT] !== undefined && after[RESTORED_AT] !== before?.[RESTORED_AT];

const Owned = z.object({ companyId: Id, id: Id });

async function matchedEvents(context: EventContext, reads: BatchReads, change: RowChange): Promise<MatchedEvent[]> {
  const type = publishedTypes.find((published) => published === change.after?.type);
  if (type === undefined || isRestored(change)) return [];
  const { companyId, id } = Owned.parse(change.after);
  const subscriptions = await reads.subscriptions(companyId);
  if (subscriptions.size === 0) return [];
  const events = await eventsOf[type](context.table, change, () => reads.dictionary(companyId));
  const matched = events
    .map((event) => ({ event, subscriptions: matchingSubscriptions(event, subscriptions) }))
    .filter(({ subscriptions }) => subscriptions.length > 0);
  const matches = matched.reduce((sum, { subscriptions }) => sum + subscriptions.length, 0);
  if (matches > 0) log.info("published", { companyId, type, id, matches });
  return matched;
}
