/** Tests which faults the service's AWS clients retry, and which time limits each call has. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { ConditionalCheckFailedException, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { ChangeMessageVisibilityCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient, GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { ClientSettings } from "#shared/aws/client-config.ts";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { sqsClient } from "#shared/aws/sqs.ts";
import { openParameters } from "#shared/aws/ssm.ts";
import { setting } from "#shared/config.ts";
import { InvalidSetting, isDeploymentFault, isTransient } from "#shared/errors.ts";
import { closeAfterEach, http } from "../harness/listening.ts";
import { thrownBy } from "../harness/shapes.ts";

closeAfterEach();
afterEach(() => {
  vi.unstubAllEnvs();
});

type Answer = (response: ServerResponse, number: number) => void;

async function listen(answer: Answer) {
  const bodies: string[] = [];
  const { endpoint } = await http(async (response, request) => {
    bodies.push(await text(request));
    answer(response, bodies.length);
  });
  return { endpoint, bodies };
}

const found = { region: "eu-west-1", credentials: { accessKeyId: "AKID", secretAccessKey: "SECRET" } };
const settings = (endpoint: string, more: ClientSettings = {}): ClientSettings => ({ ...found, endpoint, ...more });
const get = new GetCommand({ TableName: "t", Key: { pk: "a" } });
const put = new PutCommand({ TableName: "t", Item: { pk: "a" } });
const released = (QueueUrl: string) =>
  new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle: "r", VisibilityTimeout: 0 });

const ok: Answer = (response) => response.end('{"Item":{"pk":{"S":"a"}}}');
const fault =
  (status: number, type: string): Answer =>
  (response) =>
    response
      .writeHead(status, { "Content-Type": "application/x-amz-json-1.0" })
      .end(JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}`, message: "m" }));
const first =
  (count: number, answer: Answer): Answer =>
  (response, number) =>
    (number <= count ? answer : ok)(response, number);

test("a call of SQS goes to the host in the queue's URL, not to AWS_ENDPOINT_URL", async () => {
  const [given, ofQueue] = await Promise.all([listen(ok), listen(ok)]);
  vi.stubEnv("AWS_ENDPOINT_URL", given.endpoint);
  const QueueUrl = `${ofQueue.endpoint}/123456789012/queue`;
  await sqsClient(found).send(released(QueueUrl));
  expect([given.bodies.length, ofQueue.bodies.length]).toEqual([0, 1]);
});

test.each<[string, Answer]>([
  ["throttling", fault(400, "ProvisionedThroughputExceededException")],
  ["throttling by status alone", (response) => response.writeHead(429).end()],
  ["a fault of the service", fault(500, "InternalServerError")],
  ["a gateway's answer that is no JSON", (response) => response.writeHead(502).end("<html>bad gateway</html>")],
  ["a broken connection", (response) => response.destroy()],
  [
    "an answer that breaks off",
    (response) => response.writeHead(200, { "Content-Length": 50 }).write('{"It', () => response.destroy()),
  ],
])("a call is sent again after %s", async (_, answer) => {
  const { endpoint, bodies } = await listen(first(1, answer));
  expect(await dynamoClient(settings(endpoint)).send(get)).toMatchObject({ Item: { pk: "a" } });
  expect(bodies).toHaveLength(2);
  expect(bodies[1]).toBe(bodies[0]);
});

test.each<[string, Answer]>([
  ["a fault of the service", fault(503, "ServiceUnavailable")],
  ["no answer", (response) => response.destroy()],
])("%s ends the call after three attempts with a temporary fault", async (_, answer) => {
  const { endpoint, bodies } = await listen(answer);
  const error = await thrownBy(dynamoClient(settings(endpoint)).send(put));
  expect(bodies).toHaveLength(3);
  expect(isTransient(error)).toBe(true);
});

describe("a fault of the deployment, but no temporary one, is", () => {
  const isOnlyDeployments = (error: unknown) => [isDeploymentFault(error), isTransient(error)];

  test.each([
    ...["AccessDeniedException", "ExpiredTokenException", "IncompleteSignatureException", "InvalidSignatureException"],
    ...["KMSDisabledException", "MissingAuthenticationTokenException", "OptInRequired", "ResourceNotFoundException"],
    "UnrecognizedClientException",
  ])("%s of DynamoDB", async (code) => {
    const { endpoint } = await listen(fault(400, code));
    const error = await thrownBy(dynamoClient(settings(endpoint, { attempts: 1 })).send(get));
    expect(isOnlyDeployments(error)).toEqual([true, false]);
  });

  test.each([
    ["AccessDenied", "AccessDeniedException"],
    ["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"],
    ["InvalidSecurity", "InvalidSecurity"],
    ["KMS.AccessDeniedException", "KmsAccessDenied"],
    ["KMS.DisabledException", "KmsDisabled"],
  ])("%s of SQS", async (old, type) => {
    const { endpoint } = await listen((response) =>
      response
        .writeHead(400, { "Content-Type": "application/x-amz-json-1.0", "x-amzn-query-error": `${old};Sender` })
        .end(JSON.stringify({ __type: `com.amazonaws.sqs#${type}`, message: "m" })),
    );
    const message = new SendMessageCommand({ QueueUrl: `${endpoint}/1/queue`, MessageBody: "{}" });
    const error = await thrownBy(sqsClient(settings(endpoint, { attempts: 1 })).send(message));
    expect(isOnlyDeployments(error)).toEqual([true, false]);
  });

  test("a missing setting", () => {
    vi.stubEnv("TABLE_NAME", "");
    expect(() => setting("TABLE_NAME")).toThrow(InvalidSetting);
    expect(isDeploymentFault(new InvalidSetting("m"))).toBe(true);
  });
});

test.each(["ConditionalCheckFailedException", "ValidationException", "ItemCollectionSizeLimitExceededException"])(
  "%s is neither a temporary fault nor one of the deployment, and is not retried",
  async (code) => {
    const { endpoint, bodies } = await listen(fault(400, code));
    const error = await thrownBy(dynamoClient(settings(endpoint)).send(put));
    expect([isTransient(error), isDeploymentFault(error), bodies.length]).toEqual([false, false, 1]);
    expect(error instanceof ConditionalCheckFailedException).toBe(code === "ConditionalCheckFailedException");
  },
);

test.each<[string, Answer]>([
  ["no answer comes", () => undefined],
  ["the answer only begins", (response) => response.writeHead(200).write("{")],
])("each attempt ends if %s", async (_, answer) => {
  const { endpoint } = await listen(answer);
  const client = dynamoClient(settings(endpoint, { answerMs: 50, attempts: 2 }));
  const error = await thrownBy(client.send(get));
  expect(isTransient(error)).toBe(true);
  // The number of requests that arrive is not checked: on a busy machine, an attempt may end before its request arrives.
  expect(error).toMatchObject({ $metadata: { attempts: 2 } });
});

test("a client reaches a service on IPv6", async () => {
  const server = createServer((_, response) => ok(response, 1)).listen(0, "::1");
  onTestFinished(() => server.closeAllConnections());
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const address = server.address();
  const endpoint = `http://[::1]:${typeof address === "object" ? address?.port : ""}`;
  expect(await dynamoClient(settings(endpoint)).send(get)).toMatchObject({ Item: { pk: "a" } });
});

test("a client keeps its connection between calls", async () => {
  const connections = new Set<unknown>();
  const { endpoint } = await listen((response, number) => {
    connections.add(response.socket);
    ok(response, number);
  });
  const client = dynamoClient(settings(endpoint));
  for (let i = 0; i < 20; i++) await client.send(get);
  expect(connections.size).toBe(1);
});

test("SQS may answer with an empty body", async () => {
  const { endpoint, bodies } = await listen((response) => response.end());
  await sqsClient(settings(endpoint)).send(released(`${endpoint}/1/q`));
  expect(bodies).toHaveLength(1);
});

test("a parameter without a value is an error that names the parameter, and not an empty text", async () => {
  const values = [{}, { Parameter: {} }, { Parameter: { Value: "" } }, { Parameter: { Value: "secret" } }];
  const { endpoint } = await listen((response, number) =>
    response.writeHead(200, { "Content-Type": "application/x-amz-json-1.1" }).end(JSON.stringify(values[number - 1])),
  );
  const parameters = openParameters(settings(endpoint));
  for (let i = 0; i < 3; i++) {
    await expect(parameters.read("/a")).rejects.toThrow("the SSM parameter /a has no value: store one");
  }
  expect(await parameters.read("/a")).toBe("secret");
});

const putSecret = new PutCommand({ TableName: "t", Item: { pk: "a", name: "Zqxprivate" } });

/** Executes a call, and returns how often the SDK copies the call's response in order to log it. */
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
  await client.send(putSecret);
  return copies;
}

describe("the service's log", () => {
  const lines: string[] = [];
  beforeEach(() => {
    lines.length = 0;
    vi.stubEnv("LOG_LEVEL", "debug");
    vi.spyOn(process.stderr, "write").mockImplementation((text) => lines.push(String(text)) > 0);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  test("has each warning of the SDK", async () => {
    const { endpoint } = await listen(ok);
    vi.stubEnv("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    const QueueUrl = `${endpoint}/123456789012/queue`;
    await sqsClient(found).send(released(QueueUrl));
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        level: "WARN",
        message: { event: "aws sdk warning", message: expect.stringContaining("using QueueUrl host as endpoint") },
      },
    ]);
  });

  test("has a failed call only on the level debug, without the input of the call, and no call that succeeds", async () => {
    await dynamoClient(settings((await listen(ok)).endpoint)).send(putSecret);
    expect(lines).toEqual([]);
    const { endpoint } = await listen(fault(400, "ConditionalCheckFailedException"));
    await expect(dynamoClient(settings(endpoint)).send(putSecret)).rejects.toThrow(ConditionalCheckFailedException);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        level: "DEBUG",
        message: { event: "aws call failed", command: "PutItemCommand", error: "ConditionalCheckFailedException" },
      },
    ]);
    expect(lines.join("")).not.toContain("Zqxprivate");
    vi.stubEnv("LOG_LEVEL", "info");
    await expect(dynamoClient(settings(endpoint)).send(putSecret)).rejects.toThrow(ConditionalCheckFailedException);
    expect(lines).toHaveLength(1);
  });

  test("needs no copy of a response, which the SDK makes for its usual logger", async () => {
    const { endpoint } = await listen(ok);
    expect(await copiesOf(DynamoDBDocumentClient.from(new DynamoDBClient({ ...found, endpoint })))).toBe(1);
    expect(await copiesOf(dynamoClient(settings(endpoint)))).toBe(0);
  });
});
