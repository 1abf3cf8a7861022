/** Tests which faults the service's AWS clients retry, which time limits each call has, and how the errors of S3 are classified. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { ConditionalCheckFailedException, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { ChangeMessageVisibilityCommand } from "@aws-sdk/client-sqs";
import { GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { ClientSettings } from "#shared/aws/client-config.ts";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { openObjects, s3Client } from "#shared/aws/s3.ts";
import { sqsClient } from "#shared/aws/sqs.ts";
import { openParameters } from "#shared/aws/ssm.ts";
import { isTransient } from "#shared/errors.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
  vi.unstubAllEnvs();
});

type Answer = (response: ServerResponse, number: number) => void;

async function listen(answer: Answer, host = "127.0.0.1") {
  const bodies: string[] = [];
  let connections = 0;
  const server = createServer(async (request, response) => {
    bodies.push(await text(request));
    answer(response, bodies.length);
  });
  server.on("connection", () => {
    connections++;
  });
  server.listen(0, host);
  await once(server, "listening");
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : "";
  const endpoint = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  return { endpoint, bodies, connections: () => connections };
}

const settings = (endpoint: string, more: ClientSettings = {}): ClientSettings => ({
  endpoint,
  region: "eu-west-1",
  credentials: { accessKeyId: "AKID", secretAccessKey: "SECRET" },
  ...more,
});
const get = new GetCommand({ TableName: "t", Key: { pk: "a" } });
const put = new PutCommand({ TableName: "t", Item: { pk: "a" } });

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
  const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const { endpoint: _, ...found } = settings("");
  const QueueUrl = `${ofQueue.endpoint}/123456789012/queue`;
  await sqsClient(found).send(
    new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle: "r", VisibilityTimeout: 0 }),
  );
  expect([given.bodies.length, ofQueue.bodies.length]).toEqual([0, 1]);
  expect(String(warn.mock.calls)).toContain("using QueueUrl host as endpoint");
  warn.mockRestore();
});

describe("a call is sent again after", () => {
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
  ])("%s", async (_, answer) => {
    const { endpoint, bodies } = await listen(first(1, answer));
    expect(await dynamoClient(settings(endpoint)).send(get)).toMatchObject({ Item: { pk: "a" } });
    expect(bodies).toHaveLength(2);
    expect(bodies[1]).toBe(bodies[0]);
  });
});

test.each<[string, Answer]>([
  ["a fault of the service", fault(503, "ServiceUnavailable")],
  ["no answer", (response) => response.destroy()],
])("%s ends the call after three attempts with a temporary fault", async (_, answer) => {
  const { endpoint, bodies } = await listen(answer);
  const error: unknown = await dynamoClient(settings(endpoint))
    .send(put)
    .catch((thrown: unknown) => thrown);
  expect(bodies).toHaveLength(3);
  expect(isTransient(error)).toBe(true);
});

test("a failed condition is not retried and does not count as temporary", async () => {
  const { endpoint, bodies } = await listen(fault(400, "ConditionalCheckFailedException"));
  const error: unknown = await dynamoClient(settings(endpoint))
    .send(put)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ConditionalCheckFailedException);
  expect(bodies).toHaveLength(1);
  expect(isTransient(error)).toBe(false);
});

describe("each attempt ends if", () => {
  test.each<[string, Answer]>([
    ["no answer comes", () => undefined],
    ["the answer only begins", (response) => response.writeHead(200).write("{")],
  ])("%s", async (_, answer) => {
    const { endpoint, bodies } = await listen(answer);
    const client = dynamoClient(settings(endpoint, { answerMs: 50, attempts: 2 }));
    const error: unknown = await client.send(get).catch((thrown: unknown) => thrown);
    expect(isTransient(error)).toBe(true);
    expect(bodies).toHaveLength(2);
  });
});

test("a client reaches a service on IPv6", async () => {
  const { endpoint } = await listen(ok, "::1");
  expect(await dynamoClient(settings(endpoint)).send(get)).toMatchObject({ Item: { pk: "a" } });
});

test("a client keeps its connection between calls", async () => {
  const { endpoint, connections } = await listen(ok);
  const client = dynamoClient(settings(endpoint));
  for (let i = 0; i < 20; i++) await client.send(get);
  expect(connections()).toBe(1);
});

test("SQS may answer with an empty body", async () => {
  const { endpoint, bodies } = await listen((response) => response.end());
  const command = new ChangeMessageVisibilityCommand({
    QueueUrl: `${endpoint}/1/q`,
    ReceiptHandle: "r",
    VisibilityTimeout: 1,
  });
  await sqsClient(settings(endpoint)).send(command);
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

describe("errors of S3", () => {
  const s3Fault = (status: number, code: string): Answer => {
    const xml = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>m</Message></Error>`;
    return (response) => response.writeHead(status, { "Content-Type": "application/xml" }).end(xml);
  };
  const bucketAt = (endpoint: string) => openObjects(() => s3Client(settings(endpoint, { attempts: 1 })));

  test.each([
    [404, "NoSuchKey"],
    [404, "NoSuchUpload"],
    [412, "PreconditionFailed"],
  ])("%i %s means that the file is gone", async (status, code) => {
    vi.stubEnv("BUCKET_NAME", "files");
    const { endpoint } = await listen(s3Fault(status, code));
    const bucket = bucketAt(endpoint);
    await expect(bucket.get("a")).rejects.toMatchObject({ name: "FileGone" });
    await expect(bucket.read("a", '"tag"').next()).rejects.toMatchObject({ name: "FileGone" });
    expect(await bucket.info("a")).toBeUndefined();
  });

  test.each([
    [301, "PermanentRedirect"],
    [400, "ExpiredToken"],
    [403, "AccessDenied"],
    [403, "InvalidAccessKeyId"],
    [403, "RequestTimeTooSkewed"],
    [403, "SignatureDoesNotMatch"],
    [404, "NoSuchBucket"],
    [409, "OperationAborted"],
    [416, "InvalidRange"],
    [429, "TooManyRequests"],
    [500, "InternalError"],
    [503, "SlowDown"],
  ])("%i %s is a fault of the deployment or of the service", async (status, code) => {
    vi.stubEnv("BUCKET_NAME", "files");
    const { endpoint } = await listen(s3Fault(status, code));
    const bucket = bucketAt(endpoint);
    await expect(bucket.get("a")).rejects.toMatchObject({ name: "BucketUnavailable" });
    await expect(bucket.read("a", '"tag"').next()).rejects.toMatchObject({ name: "BucketUnavailable" });
    await expect(bucket.put("a", Buffer.from("x"), "text/plain")).rejects.toMatchObject({ name: "BucketUnavailable" });
  });

  test("a HEAD that fails with 403 does not mean a missing file", async () => {
    vi.stubEnv("BUCKET_NAME", "files");
    const { endpoint } = await listen((response) => response.writeHead(403).end());
    await expect(bucketAt(endpoint).info("a")).rejects.toMatchObject({ name: "BucketUnavailable" });
  });
});

test("the SDK's own client copies each answer for a logger, and the client of the table does not", () => {
  const isLogging = ({ middlewareStack }: { middlewareStack: { identify: () => string[] } }) =>
    middlewareStack.identify().some((middleware) => middleware.startsWith("loggerMiddleware"));
  expect(isLogging(new DynamoDBClient({ region: "us-east-1" }))).toBe(true);
  expect(isLogging(dynamoClient({ region: "us-east-1" }))).toBe(false);
});
