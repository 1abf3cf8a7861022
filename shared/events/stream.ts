/** Owns a batch of stream records: unpacks them, goes through them in order and says where it stopped. */
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from "aws-lambda";
import * as z from "zod/mini";
import { ConditionFailed, TableBusy } from "#shared/db/errors.ts";
import type { Item } from "#shared/db/table.ts";
import { type BatchReads, batchReads, publishChange } from "#shared/events/publish.ts";
import type { EventWorld } from "#shared/events/world.ts";
import { isTransient } from "#shared/failure.ts";
import { errorFields, log, withLogContext } from "#shared/log.ts";

/**
 * A passing fault stops the batch at its record, which then begins the next batch. A record that no try can publish is
 * parked with its data and the batch goes on, so that one bad record holds up nobody.
 */
export function publishStream(world: () => EventWorld): (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse> {
  return async ({ Records }) => {
    const reads = batchReads(world());
    for (const record of Records) {
      const sequenceNumber = record.dynamodb?.SequenceNumber ?? "";
      try {
        await withLogContext({ sequenceNumber }, () => publishRecord(world(), reads, record));
      } catch (error) {
        log.warn("record failed", { sequenceNumber, ...errorFields(error) });
        return { batchItemFailures: [{ itemIdentifier: sequenceNumber }] };
      }
    }
    return { batchItemFailures: [] };
  };
}

async function publishRecord(world: EventWorld, reads: BatchReads, record: DynamoDBRecord): Promise<void> {
  try {
    const change = { before: image(record.dynamodb?.OldImage), after: image(record.dynamodb?.NewImage) };
    await publishChange(world, reads, change);
  } catch (error) {
    if (isPassing(error)) throw error;
    log.error("record parked", errorFields(error));
    await world.park(record, error instanceof Error ? error.name : "unknown");
  }
}

const isPassing = (error: unknown): boolean =>
  isTransient(error) || error instanceof TableBusy || error instanceof ConditionFailed;

/** The event's JSON form of an item differs from the SDK's in binary values alone: these come as base64. */
const Image = z.custom<Record<string, AttributeValue>>((value) => typeof value === "object" && value !== null);

const image = (raw: unknown): Item | undefined => (raw === undefined ? undefined : unmarshall(Image.parse(raw)));
