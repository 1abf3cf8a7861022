/** Owns a batch of stream records: unpacks them, goes through them in order, some at a time, and says where it stopped. */
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from "aws-lambda";
import type { EventContext } from "#shared/context.ts";
import { itemOfImage } from "#shared/db/stream-image.ts";
import { ConditionFailed, isTransient } from "#shared/errors.ts";
import { errorFields, log, withLogContext } from "#shared/log.ts";
import { type BatchReads, batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import type { RowChange } from "#shared/webhooks/events/row-change.ts";

/** Records that are published together: as many new rows as one call of the table takes. */
const TOGETHER = 25;

/**
 * A passing fault stops the batch at its record, which then begins the next batch. A record that no try can publish is
 * parked with its data and the batch goes on, so that one bad record holds up nobody.
 */
export function publishStream(
  context: () => EventContext,
): (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse> {
  return async ({ Records }) => {
    const reads = batchReads(context());
    for (let first = 0; first < Records.length; first += TOGETHER) {
      const failed = await publishSome(context(), reads, Records.slice(first, first + TOGETHER));
      if (failed !== undefined) return { batchItemFailures: [{ itemIdentifier: failed }] };
    }
    return { batchItemFailures: [] };
  };
}

/** Those that fail together are tried one by one, which changes nothing for the others: so the one at fault is known. */
async function publishSome(
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
    if (isPassing(error)) throw error;
    log.error("record parked", errorFields(error));
    await context.park(record, error instanceof Error ? error.name : "unknown");
  }
}

const changeOf = ({ dynamodb }: DynamoDBRecord): RowChange => ({
  before: dynamodb?.OldImage && itemOfImage(dynamodb.OldImage),
  after: dynamodb?.NewImage && itemOfImage(dynamodb.NewImage),
});

const isPassing = (error: unknown): boolean => isTransient(error) || error instanceof ConditionFailed;
