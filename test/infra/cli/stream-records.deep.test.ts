/** Tests that `npm run dead-letters -- redrive` reads the stream of the table although two functions read it too. */
import { PutItemCommand, UpdateTableCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, expect, test } from "vitest";
import { streamsClient } from "../../../infra/cli/clients.ts";
import { streamRecords } from "../../../infra/cli/stream-records.ts";
import { dynamoDbAt, streamsAt } from "../../../infra/local/servers/clients.ts";
import { LOCAL, pass, startFaultyDynamoDb, TABLE } from "../../harness/faulty-dynamodb.ts";
import { recordInStream } from "./table-stream.ts";

/** With more than two readers of a shard, DynamoDB Streams refuses some of their requests with this error. */
const refusal = { kind: "error", code: "LimitExceededException", status: 400 } as const;

const dynamo = await startFaultyDynamoDb();
afterAll(() => dynamo.stop());
const table = dynamoDbAt(dynamo.directEndpoint);
const StreamSpecification = { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" } as const;
await table.send(new UpdateTableCommand({ TableName: TABLE, StreamSpecification }));
await table.send(new PutItemCommand({ TableName: TABLE, Item: { pk: { S: "c#1" }, sk: { S: "p#1" } } }));
const { position } = await recordInStream(streamsAt(dynamo.directEndpoint), TABLE, () => true);
/** A message like the one that Lambda sends to the dead-letter queue of a stream. */
const message = JSON.stringify({ version: "1.0", DDBStreamBatchInfo: position });

test("a read that DynamoDB Streams refuses, because the shard has too many readers, is repeated", async () => {
  const refused = new Set<string>();
  dynamo.plan((operation) => {
    if (refused.has(operation)) return pass;
    refused.add(operation);
    return refusal;
  });
  const records = await streamRecords(streamsClient({ ...LOCAL, endpoint: dynamo.endpoint }), TABLE, message);
  expect(records).toMatchObject([{ dynamodb: { NewImage: { pk: { S: "c#1" }, sk: { S: "p#1" } } } }]);
  expect([...refused]).toEqual(["ListStreams", "GetShardIterator", "GetRecords"]);
  expect(dynamo.calls).toHaveLength(6);
});
