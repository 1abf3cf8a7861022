/** Finds records in the stream of a table, for tests of the command that repeats failed stream records. */
import {
  type _Record,
  DescribeStreamCommand,
  type DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  ListStreamsCommand,
} from "@aws-sdk/client-dynamodb-streams";
import { expect } from "vitest";
import { present } from "../../harness/shapes.ts";

/** Returns the first wanted record, and its position in the form in which Lambda names failed stream records in a message. */
export async function recordInStream(
  streams: DynamoDBStreamsClient,
  TableName: string,
  isWanted: (record: _Record) => boolean,
) {
  const { Streams = [] } = await streams.send(new ListStreamsCommand({ TableName }));
  const StreamArn = present(Streams[0]?.StreamArn);
  const { StreamDescription } = await streams.send(new DescribeStreamCommand({ StreamArn }));
  for (const { ShardId: shardId = "" } of StreamDescription?.Shards ?? []) {
    const start = { StreamArn, ShardId: shardId, ShardIteratorType: "TRIM_HORIZON" } as const;
    let { ShardIterator } = await streams.send(new GetShardIteratorCommand(start));
    while (ShardIterator !== undefined) {
      const { Records = [], NextShardIterator } = await streams.send(new GetRecordsCommand({ ShardIterator }));
      const record = Records.find(isWanted);
      if (record !== undefined) {
        const number = present(record.dynamodb?.SequenceNumber);
        return { record, position: { shardId, startSequenceNumber: number, endSequenceNumber: number } };
      }
      ShardIterator = Records.length === 0 ? undefined : NextShardIterator;
    }
  }
  return expect.fail("the stream does not hold the row");
}
