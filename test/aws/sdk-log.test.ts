/** Tests which messages of the AWS SDK are in the service's log, and that the SDK does not copy responses for a logger. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { ChangeMessageVisibilityCommand } from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient, PutCommand } from "@aws-sdk/lib-dynamodb";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { sqsClient } from "#shared/aws/sqs.ts";
import { closeAfterEach, http } from "../harness/listening.ts";

const faulty = '{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"as planned"}';
let answer = { status: 200, body: "{}" };
const local = { region: "us-east-1", credentials: { accessKeyId: "AKID", secretAccessKey: "SECRET" } };
let endpoint = "";
const put = new PutCommand({ TableName: "t", Item: { pk: "a", name: "Zqxprivate" } });

closeAfterEach();
const lines: string[] = [];
beforeEach(async () => {
  ({ endpoint } = await http((response, request) => {
    request.resume();
    response.writeHead(answer.status, { "Content-Type": "application/x-amz-json-1.0" }).end(answer.body);
  }));
  lines.length = 0;
  answer = { status: 200, body: "{}" };
  vi.stubEnv("LOG_LEVEL", "debug");
  vi.spyOn(process.stderr, "write").mockImplementation((text) => lines.push(String(text)) > 0);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

describe("the service's log", () => {
  test("has each warning of the SDK", async () => {
    vi.stubEnv("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    const QueueUrl = `${endpoint}/123456789012/queue`;
    await sqsClient(local).send(
      new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle: "r", VisibilityTimeout: 0 }),
    );
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        level: "WARN",
        message: { event: "aws sdk warning", message: expect.stringContaining("using QueueUrl host as endpoint") },
      },
    ]);
  });

  test("has a failed call only on the level debug, and without the input of the call", async () => {
    answer = { status: 400, body: faulty };
    await expect(dynamoClient({ ...local, endpoint }).send(put)).rejects.toThrow("as planned");
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        level: "DEBUG",
        message: { event: "aws call failed", command: "PutItemCommand", error: "ConditionalCheckFailedException" },
      },
    ]);
    expect(lines.join("")).not.toContain("Zqxprivate");
    vi.stubEnv("LOG_LEVEL", "info");
    await expect(dynamoClient({ ...local, endpoint }).send(put)).rejects.toThrow("as planned");
    expect(lines).toHaveLength(1);
  });

  test("has no line for a call that succeeds", async () => {
    await dynamoClient({ ...local, endpoint }).send(put);
    expect(lines).toEqual([]);
  });
});

/** Executes a call, and returns how often the SDK copies its response for the logger. */
async function copiesOf(client: DynamoDBDocumentClient): Promise<number> {
  let copies = 0;
  const copy = (output: unknown): unknown => {
    copies++;
    return output;
  };
  client.middlewareStack.add(
    (next, context) => (args) => {
      const filters = { outputFilterSensitiveLog: copy, dynamoDbDocumentClientOptions: {} };
      Object.assign(context, filters);
      return next(args);
    },
    { step: "initialize" },
  );
  await client.send(put);
  return copies;
}

test("the SDK copies each response for its usual logger, but not for that of the service", async () => {
  expect(await copiesOf(DynamoDBDocumentClient.from(new DynamoDBClient({ ...local, endpoint })))).toBe(1);
  expect(await copiesOf(dynamoClient({ ...local, endpoint }))).toBe(0);
});
