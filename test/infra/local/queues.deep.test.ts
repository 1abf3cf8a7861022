/**
 * Tests that the local server of SQS and S3 stores messages and objects, accepts connections only from this machine, and does not let many
 * messages of one company delay the few of another.
 */
import { mkdtempSync } from "node:fs";
import { connect } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { GetObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
} from "@aws-sdk/client-sqs";
import { afterAll, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import {
  createBuckets,
  createQueues,
  depthOf,
  type QueueServer,
  startQueues,
} from "../../../infra/local/engines/queues.ts";
import { s3At } from "../../../infra/local/servers/clients.ts";
import { FairQueue } from "../../../infra/local/sources/fair-queue.ts";
import { startPoller } from "../../../infra/local/sources/poller.ts";
import { queueDriver } from "../../../infra/local/sources/queue-driver.ts";
import { queueArn, queueUrl } from "../../../infra/local/template/names.ts";
import { schemas } from "../../../infra/local/template/resources.ts";
import { readStack } from "../../../infra/local/template/stack.ts";
import { fixtureTemplate } from "./fixture.ts";

const directory = mkdtempSync(join(tmpdir(), "canvassing-queues-"));

async function start(from: string | undefined, visibilitySeconds = 30): Promise<QueueServer> {
  const template = fixtureTemplate();
  Object.assign(template.Resources.Work?.Properties ?? {}, { VisibilityTimeout: visibilitySeconds });
  const Filter = { S3Key: { Rules: [{ Name: "prefix", Value: "uploads/" }] } };
  const configuration = { Event: "s3:ObjectCreated:*", Queue: { "Fn::GetAtt": ["Work", "Arn"] }, Filter };
  const NotificationConfiguration = { QueueConfigurations: [configuration] };
  template.Resources.Files = { Type: "AWS::S3::Bucket", Properties: { NotificationConfiguration } };
  const server = await startQueues(from);
  const stack = readStack([template], server.endpoint, "/assembly");
  await createQueues(server, stack);
  await createBuckets(server, stack);
  return server;
}

const work = ({ endpoint }: QueueServer) => queueUrl(endpoint, "Work");
const send = (server: QueueServer, MessageBody: string, DelaySeconds = 0) =>
  server.sqs.send(new SendMessageCommand({ QueueUrl: work(server), MessageBody, DelaySeconds, MessageGroupId: "7" }));

test("messages and objects survive a restart; a message in flight is visible at once, and a delayed message stays delayed", async () => {
  const first = await start(directory);
  expect(first.isNew).toBe(true);
  await send(first, "in flight");
  const receive = { QueueUrl: work(first), VisibilityTimeout: 43_200 };
  await first.sqs.send(new ReceiveMessageCommand(receive));
  await send(first, "delayed", 600);
  const object = { Bucket: "files", Key: "a/b c.csv" };
  await s3At(first.endpoint).send(new PutObjectCommand({ ...object, Body: "one", ContentType: "text/csv" }));
  await first.stop();

  const second = await start(directory, 60);
  expect(second.isNew).toBe(false);
  expect(await depthOf(second, "Work")).toEqual({ waiting: 1, inFlight: 0, delayed: 1 });
  const { Messages } = await second.sqs.send(
    new ReceiveMessageCommand({
      QueueUrl: work(second),
      MessageSystemAttributeNames: ["All"],
      MessageAttributeNames: ["All"],
    }),
  );
  expect(Messages).toMatchObject([{ Body: "in flight", Attributes: { ApproximateReceiveCount: "2" } }]);
  expect(Object.values(Messages?.[0]?.MessageAttributes ?? {})).toMatchObject([{ StringValue: "7" }]);
  const { Body, ContentType } = await s3At(second.endpoint).send(new GetObjectCommand(object));
  expect([await Body?.transformToString(), ContentType]).toEqual(["one", "text/csv"]);
  await second.stop();
});

test("each new object of a prefix causes one message, and an object may be larger than 11 MiB", async () => {
  const server = await start(undefined);
  const s3 = s3At(server.endpoint);
  const bytes = 12 * 1024 * 1024;
  for (const [Key, Body] of [
    ["uploads/a b.csv", Buffer.alloc(bytes)],
    ["other/1", "1"],
  ] as const)
    await s3.send(new PutObjectCommand({ Bucket: "files", Key, Body }));
  const receive = new ReceiveMessageCommand({ QueueUrl: work(server), MaxNumberOfMessages: 10 });
  const { Messages = [] } = await server.sqs.send(receive);
  expect(Messages.map(({ Body = "" }) => JSON.parse(Body).Records[0].s3.object)).toMatchObject([
    { key: "uploads/a%20b.csv", size: bytes },
  ]);
  expect((await depthOf(server, "Work")).waiting).toBe(0);
  await server.stop();
});

const others = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .filter(({ internal, family }) => !internal && family === "IPv4");

test.skipIf(others.length === 0)("a connection from an address that is not loopback is closed unanswered", async () => {
  const server = await start(undefined);
  const socket = connect(Number(new URL(server.endpoint).port), others[0]?.address);
  socket.write("GET /files HTTP/1.1\r\nHost: a\r\n\r\n");
  let answer = "";
  await new Promise<void>((resolve) => {
    socket
      .on("data", (text) => {
        answer += text.toString();
      })
      .once("error", () => undefined)
      .once("close", () => resolve());
  });
  expect(answer).toBe("");
  await server.stop();
});

const NAME = "Fair";
const Event = z.object({
  Records: z.array(
    z.object({
      body: z.string(),
      messageId: z.string(),
      receiptHandle: z.string(),
      attributes: z.looseObject({ MessageGroupId: z.optional(z.string()), ApproximateReceiveCount: z.string() }),
    }),
  ),
});

test("a fair queue serves the group with the fewest messages in work first, and among equals the least recently served", () => {
  const queue = new FairQueue<string>((name) => name.slice(0, 1));
  for (const name of ["a1", "a2", "a3", "b1"]) queue.push(name);
  const taken = Array.from({ length: 4 }, () => queue.take());
  expect(taken).toEqual(["a1", "b1", "a2", "a3"]);
  expect(queue.take()).toBeUndefined();
  // Groups a and b each have a message in work, and group c has none, so the queue returns the message of c first.
  for (const name of ["a2", "a3"]) queue.done(name);
  queue.push("b2");
  queue.push("c1");
  expect(queue.take()).toBe("c1");
});

describe("the local queue", async () => {
  const queues = await startQueues();
  afterAll(() => queues.stop());
  const faults: string[] = [];

  function polled(
    name: string,
    visibilitySeconds: number,
    concurrency: number,
    work: (event: z.infer<typeof Event>) => Promise<string>,
  ) {
    const FunctionResponseTypes = ["ReportBatchItemFailures"];
    const settings = { EventSourceArn: queueArn(name), FunctionName: "f", BatchSize: 1, FunctionResponseTypes };
    const mapping = { ...z.parse(schemas["AWS::Lambda::EventSourceMapping"], settings), id: name, name };
    const target = { invoke: (event: unknown) => work(z.parse(Event, event)) };
    const driver = queueDriver({ mapping, target, queues, visibilitySeconds, concurrency });
    return startPoller(driver, (text) => void faults.push(text));
  }

  test("serves another group before a backlog, passes the group to functions, and hands out each message once", async () => {
    const QueueUrl = queueUrl(queues.endpoint, NAME);
    await queues.sqs.send(new CreateQueueCommand({ QueueName: NAME, Attributes: { VisibilityTimeout: "600" } }));
    const send = (MessageGroupId: string, bodies: string[]) =>
      queues.sqs.send(
        new SendMessageBatchCommand({
          QueueUrl,
          Entries: bodies.map((MessageBody, i) => ({ Id: String(i), MessageBody, MessageGroupId })),
        }),
      );
    for (let first = 0; first < 100; first += 10) {
      const bodies = Array.from({ length: 10 }, (_, i) => `busy ${first + i}`);
      await send("busy", bodies);
    }
    const seen: string[] = [];
    const open: (() => void)[] = [];
    const release = () => {
      for (const go of open.splice(0)) go();
    };
    const source = polled(NAME, 600, 4, async ({ Records }) => {
      for (const { body, attributes } of Records) {
        seen.push(body);
        expect(attributes).toMatchObject({ MessageGroupId: body.split(" ")[0], ApproximateReceiveCount: "1" });
      }
      await new Promise<void>((go) => open.push(go));
      return "null";
    });
    const untilSeen = (count: number) => expect.poll(() => seen.length, { interval: 5 }).toBe(count);
    await untilSeen(4);
    await send("quiet", ["quiet 1", "quiet 2"]);
    // The service has taken all 102 messages and processes four. The two messages of `quiet` have arrived last, but must be processed next.
    const inFlight = async () => (await depthOf(queues, NAME)).inFlight;
    await expect.poll(inFlight, { interval: 5 }).toBe(102);
    release();
    await untilSeen(8);
    expect(seen.slice(4).filter((body) => body.startsWith("quiet"))).toEqual(["quiet 1", "quiet 2"]);
    while (seen.length < 102 || open.length > 0) {
      release();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect([new Set(seen).size, faults]).toEqual([102, []]);
    await expect.poll(inFlight, { interval: 5 }).toBe(0);
    await source.stop();
    expect(await depthOf(queues, NAME)).toEqual({ waiting: 0, inFlight: 0, delayed: 0 });
  });

  test("hands out a failed message again after the time that the function has chosen, before the queue's own timeout", async () => {
    const name = "Chosen";
    const QueueUrl = queueUrl(queues.endpoint, name);
    const VisibilityTimeout = "43200";
    await queues.sqs.send(new CreateQueueCommand({ QueueName: name, Attributes: { VisibilityTimeout } }));
    const counts: string[] = [];
    const source = polled(name, 43_200, 1, async ({ Records: [record] }) => {
      counts.push(record?.attributes.ApproximateReceiveCount ?? "");
      if (counts.length === 3) return '{"batchItemFailures":[]}';
      const ReceiptHandle = record?.receiptHandle;
      await queues.sqs.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout: 1 }));
      return JSON.stringify({ batchItemFailures: [{ itemIdentifier: record?.messageId }] });
    });
    await queues.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "a", MessageGroupId: "a" }));
    await expect.poll(() => counts, { interval: 20 }).toEqual(["1", "2", "3"]);
    await source.stop();
  });
});
