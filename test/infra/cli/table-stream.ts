/** Finds records in the stream of a table, for tests of `npm run dead-letters`, which repeats failed stream records. */
import { type _Record, type DynamoDBStreamsClient, ListStreamsCommand } from "@aws-sdk/client-dynamodb-streams";
import { expect } from "vitest";
import { recordsOf } from "../../harness/point-in-time.ts";

/** Returns the first wanted record, and its position in the form in which Lambda names failed stream records in a message. */
export async function recordInStream(
  streams: DynamoDBStreamsClient,
  TableName: string,
  isWanted: (record: _Record) => boolean,
) {
  const { Streams = [] } = await streams.send(new ListStreamsCommand({ TableName }));
  for await (const { record, shardId } of recordsOf(streams, Streams[0]?.StreamArn)) {
    const number = record.dynamodb?.SequenceNumber ?? "";
    const position = { shardId, startSequenceNumber: number, endSequenceNumber: number };
    if (isWanted(record)) return { record, position };
  }
  return expect.fail("the stream does not hold the row");
}
