/** Owns a batch of stream records: unpacks them, goes through them in order and says where it stopped. */
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import type { DynamoDBBatchResponse, DynamoDBStreamEvent } from "aws-lambda";
import * as z from "zod/mini";
import type { Item } from "#shared/db/table.ts";
import { batchReads, publishChange } from "#shared/events/publish.ts";
import type { EventWorld } from "#shared/events/world.ts";
import { errorFields, log, withLogContext } from "#shared/log.ts";

export function publishStream(world: () => EventWorld): (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse> {
  return async ({ Records }) => {
    const reads = batchReads(world());
    for (const record of Records) {
      const sequenceNumber = record.dynamodb?.SequenceNumber ?? "";
      try {
        const change = { before: image(record.dynamodb?.OldImage), after: image(record.dynamodb?.NewImage) };
        await withLogContext({ sequenceNumber }, () => publishChange(world(), reads, change));
      } catch (error) {
        log.error("record failed", { sequenceNumber, ...errorFields(error) });
        return { batchItemFailures: [{ itemIdentifier: sequenceNumber }] };
      }
    }
    return { batchItemFailures: [] };
  };
}

/** The event's JSON form of an item differs from the SDK's in binary values alone, and events are made of none. */
const Image = z.custom<Record<string, AttributeValue>>((value) => typeof value === "object" && value !== null);

const image = (raw: unknown): Item | undefined => (raw === undefined ? undefined : unmarshall(Image.parse(raw)));
