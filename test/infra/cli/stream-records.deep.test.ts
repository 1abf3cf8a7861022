/** Tests that `npm run dead-letters -- redrive` reads the stream of the table although two functions read it too. */
import { DynamoDBClient, PutItemCommand, UpdateTableCommand } from "@aws-sdk/client-dynamodb";
import {
  DescribeStreamCommand,
  DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  ListStreamsCommand,
} from "@aws-sdk/client-dynamodb-streams";
import { afterAll, beforeAll, expect, test } from "vitest";
import { streamsClient } from "../../../infra/cli/clients.ts";
import { streamRecords } from "../../../infra/cli/stream-records.ts";
import { type FaultyDynamoDb, pass, startFaultyDynamoDb, TABLE } from "../../harness/faulty-dynamodb.ts";
import { present } from "../../harness/shapes.ts";

const local = { region: "us-east-1", credentials: { accessKeyId: "local", secretAccessKey: "local" } };
/** With more than two readers of a shard, DynamoDB Streams refuses some of their requests with this error. */
const refusal = { kind: "error", code: "LimitExceededException", status: 400 } as const;

let dynamo: FaultyDynamoDb;
let message: string;
beforeAll(async () => {
  dynamo = await startFaultyDynamoDb();
  const direct = { ...local, endpoint: dynamo.directEndpoint };
  const table = new DynamoDBClient(direct);
  const StreamSpecification = { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" } as const;
  await table.send(new UpdateTableCommand({ TableName: TABLE, StreamSpecification }));
  await table.send(new PutItemCommand({ TableName: TABLE, Item: { pk: { S: "c#1" }, sk: { S: "p#1" } } }));
  message = await messageOfFirstRecord(new DynamoDBStreamsClient(direct));
});
afterAll(() => dynamo.stop());

/** Returns a message like the one that Lambda sends to the dead-letter queue of a stream. */
async function messageOfFirstRecord(streams: DynamoDBStreamsClient): Promise<string> {
  const { Streams = [] } = await streams.send(new ListStreamsCommand({ TableName: TABLE }));
  const StreamArn = present(Streams[0]?.StreamArn);
  const { StreamDescription } = await streams.send(new DescribeStreamCommand({ StreamArn }));
  const shardId = present(StreamDescription?.Shards?.[0]?.ShardId);
  const start = new GetShardIteratorCommand({ StreamArn, ShardId: shardId, ShardIteratorType: "TRIM_HORIZON" });
  const { ShardIterator } = await streams.send(start);
  const { Records = [] } = await streams.send(new GetRecordsCommand({ ShardIterator }));
  const position = present(Records[0]?.dynamodb?.SequenceNumber);
  const between = { shardId, startSequenceNumber: position, endSequenceNumber: position };
  return JSON.stringify({ version: "1.0", DDBStreamBatchInfo: between });
}

test("a read that DynamoDB Streams refuses, because the shard has too many readers, is repeated", async () => {
  const refused = new Set<string>();
  dynamo.plan((operation) => {
    if (refused.has(operation)) return pass;
    refused.add(operation);
    return refusal;
  });
  const records = await streamRecords(streamsClient({ ...local, endpoint: dynamo.endpoint }), TABLE, message);
  expect(records).toMatchObject([{ dynamodb: { NewImage: { pk: { S: "c#1" }, sk: { S: "p#1" } } } }]);
  expect([...refused]).toEqual(["ListStreams", "GetShardIterator", "GetRecords"]);
  expect(dynamo.calls).toHaveLength(6);
});
