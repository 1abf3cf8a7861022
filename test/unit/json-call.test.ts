/** Calls of AWS without its SDK: what reaches the service, what is tried again, and that each ends. */
import { createHash, createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { text } from "node:stream/consumers";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { AwsError, awsCall, type CallSettings } from "#shared/aws/json-call.ts";
import { hostOf } from "#shared/aws/signing.ts";
import { isTransient } from "#shared/failure.ts";

const credentials = { accessKeyId: "AKID", secretAccessKey: "SECRET", sessionToken: "TOKEN" };
const ending: (() => void)[] = [];
afterEach(() => {
  for (const end of ending.splice(0)) end();
});

interface Heard {
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}
type Answers = (response: ServerResponse, number: number) => void;

/** A service that answers its nth request so. */
async function listen(
  answers: Answers,
  host = "127.0.0.1",
): Promise<{ endpoint: string; heard: Heard[]; connections: () => number }> {
  const heard: Heard[] = [];
  let connections = 0;
  const server = createServer(async (request, response) => {
    heard.push({ headers: request.headers, body: await text(request) });
    answers(response, heard.length);
  });
  server.on("connection", () => {
    connections++;
  });
  server.listen(0, host);
  await once(server, "listening");
  ending.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : "";
  return {
    endpoint: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    heard,
    connections: () => connections,
  };
}

const to = (endpoint: string, settings: CallSettings = {}) =>
  awsCall("dynamodb", { endpoint, region: "eu-west-1", credentials, ...settings });
const ok: Answers = (response) => response.end('{"Item":{}}');
const fault =
  (status: number, type: string): Answers =>
  (response) =>
    response
      .writeHead(status)
      .end(JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}`, message: "m" }));
const first =
  (count: number, answers: Answers): Answers =>
  (response, number) =>
    (number <= count ? answers : ok)(response, number);

/** AWS Signature Version 4, by its description. */
function signatureOf({ headers, body }: Heard): string {
  const [, date = "", signed = ""] =
    /Credential=AKID\/(\d{8})\/eu-west-1\/dynamodb\/aws4_request, SignedHeaders=([^,]+),/.exec(
      headers.authorization ?? "",
    ) ?? [];
  const hash = (content: string) => createHash("sha256").update(content).digest("hex");
  const mac = (key: string | Buffer, content: string) => createHmac("sha256", key).update(content).digest();
  const canonical = signed.split(";").map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const request = ["POST", "/", "", canonical.join(""), signed, hash(body)].join("\n");
  const scope = `${date}/eu-west-1/dynamodb/aws4_request`;
  const told = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hash(request)].join("\n");
  const key = ["eu-west-1", "dynamodb", "aws4_request"].reduce(mac, mac("AWS4SECRET", date));
  return mac(key, told).toString("hex");
}

test("a request names its operation and is signed, its session token and target included", async () => {
  const { endpoint, heard } = await listen(ok);
  expect(await to(endpoint)("GetItem", { Key: { pk: { S: "ü" } } })).toEqual({ Item: {} });
  const [request] = heard;
  if (request === undefined) throw new Error("nothing was heard");
  expect(request.headers).toMatchObject({
    "x-amz-target": "DynamoDB_20120810.GetItem",
    "content-type": "application/x-amz-json-1.0",
    "x-amz-security-token": "TOKEN",
  });
  expect(request.body).toBe('{"Key":{"pk":{"S":"ü"}}}');
  const { authorization = "" } = request.headers;
  expect(authorization).toContain(`Signature=${signatureOf(request)}`);
  expect(/SignedHeaders=([^,]+)/.exec(authorization)?.[1]?.split(";")).toEqual(
    expect.arrayContaining(["host", "x-amz-date", "x-amz-security-token", "x-amz-target"]),
  );
});

test("credentials that change are asked for with each try; without any the call fails and says so", async () => {
  const { endpoint, heard } = await listen(ok);
  let asked = 0;
  const call = to(endpoint, { credentials: async () => ({ ...credentials, sessionToken: `T${++asked}` }) });
  await call("GetItem", {});
  await call("GetItem", {});
  expect(heard.map(({ headers }) => headers["x-amz-security-token"])).toEqual(["T1", "T2"]);
  const { AWS_ACCESS_KEY_ID: kept } = process.env;
  delete process.env.AWS_ACCESS_KEY_ID;
  try {
    await expect(awsCall("sqs", { endpoint })("SendMessage", {})).rejects.toThrow("no AWS credentials");
  } finally {
    if (kept !== undefined) process.env.AWS_ACCESS_KEY_ID = kept;
  }
});

describe("tried again, in the same words:", () => {
  test.each<[string, Answers]>([
    ["throttling", fault(400, "ProvisionedThroughputExceededException")],
    ["throttling without a word", (response) => response.writeHead(429).end()],
    ["too many readers", fault(400, "LimitExceededException")],
    ["a fault of the service", fault(500, "InternalServerError")],
    ["an answer of a gateway that is no JSON", (response) => response.writeHead(502).end("<html>bad gateway</html>")],
    ["a broken connection", (response) => response.destroy()],
    [
      "an answer that breaks off",
      (response) => response.writeHead(200, { "Content-Length": 50 }).write('{"It', () => response.destroy()),
    ],
    ["an answer that is none", (response) => response.end('{"Item":')],
  ])("%s", async (_, answers) => {
    const { endpoint, heard } = await listen(first(2, answers));
    expect(await to(endpoint)("PutItem", { a: 1 })).toEqual({ Item: {} });
    expect(heard.map(({ body }) => body)).toEqual(['{"a":1}', '{"a":1}', '{"a":1}']);
  });
});

test.each<[string, Answers]>([
  ["throttling", fault(400, "ThrottlingException")],
  ["a fault of the service", fault(503, "ServiceUnavailable")],
  ["no answer", (response) => response.destroy()],
])("%s that goes on ends the call after three tries, as a fault that passes", async (_, answers) => {
  const { endpoint, heard } = await listen(answers);
  const error: unknown = await to(endpoint)("PutItem", {}).catch((thrown: unknown) => thrown);
  expect(heard).toHaveLength(3);
  expect(error).toBeInstanceOf(AwsError);
  expect(isTransient(error)).toBe(true);
});

test("what every try would meet again is not tried again, and is named as the service names it", async () => {
  const { endpoint, heard } = await listen((response) =>
    response
      .writeHead(400)
      .end('{"__type":"com.amazonaws#ConditionalCheckFailedException","Message":"no","Item":{"a":{"N":"1"}}}'),
  );
  const error: unknown = await to(endpoint)("PutItem", {}).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    name: "ConditionalCheckFailedException",
    message: "PutItem: no",
    isPassing: false,
    answer: { Item: { a: { N: "1" } } },
  });
  expect(heard).toHaveLength(1);
  expect(isTransient(error)).toBe(false);
});

describe("each try ends", () => {
  test.each<[string, Answers]>([
    ["nothing comes", () => undefined],
    ["the answer only begins", (response) => response.writeHead(200).write("{")],
  ])("where %s", async (_, answers) => {
    const { endpoint, heard } = await listen(answers);
    const call = to(endpoint, { answerMs: 50, tries: 2 });
    await expect(call("GetItem", {})).rejects.toThrow(`GetItem at ${endpoint}: no answer within 50 ms`);
    expect(heard).toHaveLength(2);
  });

  test("where nobody listens", async () => {
    const server = createTcpServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" ? address?.port : "";
    server.close();
    await expect(to(`http://127.0.0.1:${port}`)("GetItem", {})).rejects.toMatchObject({
      name: "NoAnswer",
      isPassing: true,
    });
  });
});

test("SQS may answer with nothing; of the table that is no answer", async () => {
  const { endpoint, heard } = await listen((response) => response.end());
  const settings = { endpoint, region: "eu-west-1", credentials };
  expect(await awsCall("sqs", settings)("DeleteMessage", {})).toEqual({});
  expect(heard).toHaveLength(1);
  await expect(to(endpoint)("GetItem", {})).rejects.toMatchObject({ isPassing: true });
});

test("a service that listens on IPv6 is reached", async () => {
  const { endpoint, heard } = await listen(ok, "::1");
  expect(await to(endpoint)("GetItem", {})).toEqual({ Item: {} });
  expect(heard[0]?.headers.host).toBe(endpoint.slice("http://".length));
});

test.each([
  ["dynamodb", "eu-west-1", "dynamodb.eu-west-1.amazonaws.com"],
  ["streams.dynamodb", "us-gov-west-1", "streams.dynamodb.us-gov-west-1.amazonaws.com"],
  ["sqs", "cn-north-1", "sqs.cn-north-1.amazonaws.com.cn"],
  ["sqs", "eusc-de-east-1", "sqs.eusc-de-east-1.amazonaws.eu"],
])("%s in %s is at %s", (service, region, host) => {
  expect(hostOf(service, region)).toBe(host);
});

test("connections are kept", async () => {
  const { endpoint, connections } = await listen(ok);
  const call = to(endpoint);
  for (let i = 0; i < 20; i++) await call("GetItem", {});
  expect(connections()).toBe(1);
});

test("a connection that is kept keeps no answer", async () => {
  setFlagsFromString("--expose-gc");
  const collect = z.parse(
    z.custom<() => void>((value) => typeof value === "function"),
    runInNewContext("gc"),
  );
  const held = (): number => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  // One for all answers: what the service itself keeps of them is the same however many there are.
  const large = Buffer.from(JSON.stringify({ Item: { a: { S: "x".repeat(8_000_000) } } }));
  const { endpoint, connections } = await listen((response) => response.end(large));
  const call = to(endpoint);
  await call("GetItem", {});
  const before = held();
  await Promise.all(Array.from({ length: 6 }, () => call("GetItem", {})));
  expect(connections()).toBeGreaterThan(1);
  await expect.poll(() => held() - before, { timeout: 10_000 }).toBeLessThan(large.length);
});
