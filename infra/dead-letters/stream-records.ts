/** The stream records that a message means: the parked one itself, or those at the positions that Lambda leaves behind. */
import {
  type DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  ListStreamsCommand,
  ResourceNotFoundException,
  TrimmedDataAccessException,
} from "@aws-sdk/client-dynamodb-streams";
import type { DynamoDBRecord } from "aws-lambda";
import * as z from "zod/mini";

/** As shared/events/parking.ts writes it. */
const AnyRecord = z.custom<DynamoDBRecord>((value) => typeof value === "object" && value !== null);
const Parked = z.object({ v: z.literal(1), record: AnyRecord });
/** As Lambda writes what a function did not answer to. */
const Positions = z.object({
  DDBStreamBatchInfo: z.object({
    shardId: z.string(),
    startSequenceNumber: z.string(),
    endSequenceNumber: z.string(),
  }),
});
const Body = z.union([Parked, Positions]);

/** Undefined where the stream has forgotten one of them: it does after 24 hours. */
export async function streamRecords(
  streams: DynamoDBStreamsClient,
  tableName: string,
  body: string,
): Promise<DynamoDBRecord[] | undefined> {
  const meant = z.parse(Body, JSON.parse(body));
  if ("record" in meant) return [meant.record];
  try {
    return await readPositions(streams, tableName, meant.DDBStreamBatchInfo);
  } catch (error) {
    if (error instanceof TrimmedDataAccessException || error instanceof ResourceNotFoundException) return undefined;
    throw error;
  }
}

type Positions = z.infer<typeof Positions>["DDBStreamBatchInfo"];

async function readPositions(
  streams: DynamoDBStreamsClient,
  tableName: string,
  { shardId, startSequenceNumber, endSequenceNumber }: Positions,
): Promise<DynamoDBRecord[]> {
  const { Streams = [] } = await streams.send(new ListStreamsCommand({ TableName: tableName }));
  const start = new GetShardIteratorCommand({
    StreamArn: Streams[0]?.StreamArn,
    ShardId: shardId,
    ShardIteratorType: "AT_SEQUENCE_NUMBER",
    SequenceNumber: startSequenceNumber,
  });
  const last = BigInt(endSequenceNumber);
  const found: DynamoDBRecord[] = [];
  let { ShardIterator } = await streams.send(start);
  while (ShardIterator !== undefined) {
    const { Records = [], NextShardIterator } = await streams.send(new GetRecordsCommand({ ShardIterator }));
    for (const record of Records) {
      const position = BigInt(record.dynamodb?.SequenceNumber ?? 0);
      if (position <= last) found.push(asEvent(record));
      if (position >= last) return found;
    }
    ShardIterator = NextShardIterator;
  }
  return found;
}

/** As a function gets it: JSON has no bytes, they come as base64. */
const asEvent = (record: object): DynamoDBRecord =>
  z.parse(
    AnyRecord,
    JSON.parse(
      JSON.stringify(record, (_, value: unknown) =>
        value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
      ),
    ),
  );
