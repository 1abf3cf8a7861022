/** Reads the stream records of a message in a dead-letter queue. A message contains the record itself, or positions in the stream. */
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
import { lambdaRecord } from "../local/sources/stream-record.ts";

const AnyRecord = z.custom<DynamoDBRecord>((value) => typeof value === "object" && value !== null);
const PoisonRecord = z.object({ v: z.literal(1), record: AnyRecord });
/** The message that Lambda sends to the on-failure destination of a stream's event source. */
const Positions = z.object({
  DDBStreamBatchInfo: z.object({
    shardId: z.string(),
    startSequenceNumber: z.string(),
    endSequenceNumber: z.string(),
  }),
});
const Body = z.union([PoisonRecord, Positions]);

/** Number of empty answers after which the read fails, because the shard has lost the record. Records can follow fewer empty answers. */
const EMPTY_ANSWERS = 100;

/** Returns the records that the message names, or undefined if the stream has deleted one of them, as it does after 24 hours. */
export async function streamRecords(
  streams: DynamoDBStreamsClient,
  tableName: string,
  body: string,
): Promise<DynamoDBRecord[] | undefined> {
  const message = z.parse(Body, JSON.parse(body));
  if ("record" in message) return [message.record];
  try {
    return await readPositions(streams, tableName, message.DDBStreamBatchInfo);
  } catch (error) {
    if (error instanceof TrimmedDataAccessException || error instanceof ResourceNotFoundException) return undefined;
    throw error;
  }
}

type Positions = z.infer<typeof Positions>["DDBStreamBatchInfo"];

async function readPositions(
  streams: DynamoDBStreamsClient,
  TableName: string,
  { shardId, startSequenceNumber, endSequenceNumber }: Positions,
): Promise<DynamoDBRecord[]> {
  const { Streams = [] } = await streams.send(new ListStreamsCommand({ TableName }));
  const start = new GetShardIteratorCommand({
    StreamArn: Streams[0]?.StreamArn,
    ShardId: shardId,
    ShardIteratorType: "AT_SEQUENCE_NUMBER",
    SequenceNumber: startSequenceNumber,
  });
  const last = BigInt(endSequenceNumber);
  const found: DynamoDBRecord[] = [];
  let { ShardIterator } = await streams.send(start);
  let empty = 0;
  while (ShardIterator !== undefined) {
    const { Records = [], NextShardIterator } = await streams.send(new GetRecordsCommand({ ShardIterator }));
    for (const record of Records) {
      const position = BigInt(z.string().parse(record.dynamodb?.SequenceNumber));
      if (position <= last) found.push(lambdaRecord(record));
      if (position >= last) return found;
    }
    if (Records.length === 0 && ++empty > EMPTY_ANSWERS) {
      throw new Error(`the shard ${shardId} has no record at the position ${endSequenceNumber}`);
    }
    ShardIterator = NextShardIterator;
  }
  return found;
}
