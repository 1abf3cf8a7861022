/** Tests which messages of a dead-letter queue `npm run dead-letters -- redrive` processes, that it ends, and that it reads a busy stream. */
import { PutItemCommand, UpdateTableCommand } from "@aws-sdk/client-dynamodb";
import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
} from "@aws-sdk/client-sqs";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import { streamsClient } from "../../../infra/cli/clients.ts";
import { type Redriven, redrive } from "../../../infra/cli/redrive.ts";
import { streamRecords } from "../../../infra/cli/stream-records.ts";
import { startQueues } from "../../../infra/local/engines/queues.ts";
import { dynamoDbAt, streamsAt } from "../../../infra/local/servers/clients.ts";
import { LOCAL, pass, startFaultyDynamoDb, TABLE } from "../../harness/faulty-dynamodb.ts";
import { recordInStream } from "./table-stream.ts";

const server = await startQueues();
afterAll(() => server.stop());

const create = async (QueueName: string, Attributes: Record<string, string> = {}): Promise<string> =>
  (await server.sqs.send(new CreateQueueCommand({ QueueName, Attributes }))).QueueUrl ?? "";
const send = (QueueUrl: string, MessageBody: string) =>
  server.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody }));

/** Returns the URL of a dead-letter queue. It has 25 messages that were sent after `begunMs`, and then one that was sent before. */
async function queueWithOldLast(name: string): Promise<{ url: string; begunMs: number }> {
  const url = await create(`${name}Dead`);
  const { Attributes } = await server.sqs.send(
    new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ["QueueArn"] }),
  );
  const policy = { deadLetterTargetArn: Attributes?.QueueArn, maxReceiveCount: 1 };
  const source = await create(name, { RedrivePolicy: JSON.stringify(policy) });
  await send(source, "old");
  const begunMs = Date.now();
  while (Date.now() === begunMs) await new Promise((resolve) => setTimeout(resolve, 1));
  for (let i = 0; i < 25; i++) await send(url, "new");
  // A message keeps its time of sending when SQS moves it to the dead-letter queue, which happens at the second receive.
  for (let i = 0; i < 2; i++) {
    await server.sqs.send(new ReceiveMessageCommand({ QueueUrl: source, VisibilityTimeout: 0 }));
  }
  return { url, begunMs };
}

async function run(name: string, idleBatches?: number): Promise<Redriven & { worked: string[] }> {
  const { url, begunMs } = await queueWithOldLast(name);
  const worked: string[] = [];
  const work = async ({ Body }: { Body: string }): Promise<void> => void worked.push(Body);
  return { ...(await redrive(server.sqs, { name, url, work }, begunMs, idleBatches)), worked };
}

test("older messages are processed even if whole batches contain only newer ones", async () => {
  expect(await run("Work")).toEqual({ done: 1, failed: 0, isComplete: true, worked: ["old"] });
});

test("after too many batches of newer messages the command ends, and knows that older messages may remain", async () => {
  expect(await run("Busy", 2)).toEqual({ done: 0, failed: 0, isComplete: false, worked: [] });
});

test("a message that fails is processed once, also if it becomes visible again meanwhile", async () => {
  const url = await create("FailingDead");
  await send(url, "one");
  const called = vi.fn();
  const errors = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const { sqs } = server;
  /** Makes the hidden message visible again, as SQS does after two minutes, and then fails. */
  const work = async ({ ReceiptHandle }: { ReceiptHandle: string }): Promise<void> => {
    called();
    await sqs.send(new ChangeMessageVisibilityCommand({ QueueUrl: url, ReceiptHandle, VisibilityTimeout: 0 }));
    throw new Error("again");
  };
  expect(await redrive(sqs, { name: "failing", url, work }, Date.now())).toEqual({
    done: 0,
    failed: 1,
    isComplete: true,
  });
  expect(called).toHaveBeenCalledTimes(1);
  errors.mockRestore();
});

/** With more than two readers of a shard, DynamoDB Streams refuses some of their requests with this error. */
const refusal = { kind: "error", code: "LimitExceededException", status: 400 } as const;

test("a read that DynamoDB Streams refuses, because the shard has too many readers, is repeated", async () => {
  const dynamo = await startFaultyDynamoDb();
  onTestFinished(() => dynamo.stop());
  const table = dynamoDbAt(dynamo.directEndpoint);
  const StreamSpecification = { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" } as const;
  await table.send(new UpdateTableCommand({ TableName: TABLE, StreamSpecification }));
  await table.send(new PutItemCommand({ TableName: TABLE, Item: { pk: { S: "c#1" }, sk: { S: "p#1" } } }));
  const { position } = await recordInStream(streamsAt(dynamo.directEndpoint), TABLE, () => true);
  /** A message like the one that Lambda sends to the dead-letter queue of a stream. */
  const message = JSON.stringify({ version: "1.0", DDBStreamBatchInfo: position });
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
