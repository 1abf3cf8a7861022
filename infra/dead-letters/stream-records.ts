/** The stream records that a message means: the parked one itself, or those at the positions that Lambda leaves behind. */
import type { DynamoDBRecord } from "aws-lambda";
import * as z from "zod/mini";
import { type AwsCall, AwsError } from "#shared/aws/json-call.ts";

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
  streams: AwsCall,
  tableName: string,
  body: string,
): Promise<DynamoDBRecord[] | undefined> {
  const meant = z.parse(Body, JSON.parse(body));
  if ("record" in meant) return [meant.record];
  try {
    return await readPositions(streams, tableName, meant.DDBStreamBatchInfo);
  } catch (error) {
    if (error instanceof AwsError && forgotten.has(error.name)) return undefined;
    throw error;
  }
}

const forgotten: ReadonlySet<string> = new Set(["TrimmedDataAccessException", "ResourceNotFoundException"]);

type Positions = z.infer<typeof Positions>["DDBStreamBatchInfo"];

const Listed = z.object({ Streams: z.array(z.object({ StreamArn: z.string() })) });
const Begun = z.object({ ShardIterator: z.optional(z.string()) });
const Page = z.object({ Records: z.array(AnyRecord), NextShardIterator: z.optional(z.nullable(z.string())) });

async function readPositions(
  streams: AwsCall,
  tableName: string,
  { shardId, startSequenceNumber, endSequenceNumber }: Positions,
): Promise<DynamoDBRecord[]> {
  const { Streams } = Listed.parse(await streams("ListStreams", { TableName: tableName }));
  const start = {
    StreamArn: Streams[0]?.StreamArn,
    ShardId: shardId,
    ShardIteratorType: "AT_SEQUENCE_NUMBER",
    SequenceNumber: startSequenceNumber,
  };
  const last = BigInt(endSequenceNumber);
  const found: DynamoDBRecord[] = [];
  let next = Begun.parse(await streams("GetShardIterator", start)).ShardIterator;
  while (next !== undefined) {
    const { Records, NextShardIterator } = Page.parse(await streams("GetRecords", { ShardIterator: next }));
    for (const record of Records) {
      const position = BigInt(record.dynamodb?.SequenceNumber ?? 0);
      if (position <= last) found.push(record);
      if (position >= last) return found;
    }
    next = NextShardIterator ?? undefined;
  }
  return found;
}
