/**
 * Reads the stream records of a message in a dead-letter queue. A message that the publisher function sent contains the record itself. A
 * message that Lambda sent contains only positions in the stream.
 */
import {
  type AttributeValue,
  type DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  ListStreamsCommand,
  ResourceNotFoundException,
  type _Record as SdkRecord,
  TrimmedDataAccessException,
} from "@aws-sdk/client-dynamodb-streams";
import type { DynamoDBRecord, AttributeValue as StreamValue } from "aws-lambda";
import * as z from "zod/mini";

const AnyRecord = z.custom<DynamoDBRecord>((value) => typeof value === "object" && value !== null);
const Parked = z.object({ v: z.literal(1), record: AnyRecord });
/** The message that Lambda sends to the on-failure destination of a stream's event source. */
const Positions = z.object({
  DDBStreamBatchInfo: z.object({
    shardId: z.string(),
    startSequenceNumber: z.string(),
    endSequenceNumber: z.string(),
  }),
});
const Body = z.union([Parked, Positions]);

/**
 * Maximum number of empty answers while a shard is read. A shard may answer some requests without records although more records follow. A
 * shard that is still open answers without end, so the number is limited for the case that the last position does not exist.
 */
const EMPTY_ANSWERS = 100;

/** Returns undefined if the stream has already deleted one of the records. A stream stores records for 24 hours. */
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
      const position = BigInt(record.dynamodb?.SequenceNumber ?? 0);
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

/** Converts a record of the SDK to the form in which Lambda passes it to functions. In this form, binary values are base64 strings. */
export function lambdaRecord({ dynamodb: { OldImage, NewImage, SequenceNumber } = {} }: SdkRecord): DynamoDBRecord {
  return {
    dynamodb: {
      ...(SequenceNumber !== undefined && { SequenceNumber }),
      ...(OldImage !== undefined && { OldImage: imageOf(OldImage) }),
      ...(NewImage !== undefined && { NewImage: imageOf(NewImage) }),
    },
  };
}

export const imageOf = (item: Readonly<Record<string, AttributeValue>>): Record<string, StreamValue> =>
  Object.fromEntries(Object.entries(item).map(([name, value]) => [name, attributeOf(value)]));

function attributeOf({ B, BS, M, L, ...value }: AttributeValue): StreamValue {
  if (B !== undefined) return { B: Buffer.from(B).toString("base64") };
  if (BS !== undefined) return { BS: BS.map((bytes) => Buffer.from(bytes).toString("base64")) };
  if (M !== undefined) return { M: imageOf(M) };
  if (L !== undefined) return { L: L.map(attributeOf) };
  if (value.S !== undefined) return { S: value.S };
  if (value.N !== undefined) return { N: value.N };
  if (value.BOOL !== undefined) return { BOOL: value.BOOL };
  if (value.SS !== undefined) return { SS: value.SS };
  if (value.NS !== undefined) return { NS: value.NS };
  return { NULL: true };
}
