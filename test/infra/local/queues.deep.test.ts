/** Tests that the local server of SQS and S3 stores messages and objects, and accepts connections only from this machine. */
import { mkdtempSync } from "node:fs";
import { connect } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { GetObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { ReceiveMessageCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { expect, test } from "vitest";
import {
  createBuckets,
  createQueues,
  depthOf,
  type QueueServer,
  startQueues,
} from "../../../infra/local/engines/queues.ts";
import { s3At } from "../../../infra/local/servers/clients.ts";
import { queueUrl } from "../../../infra/local/template/names.ts";
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

test("without a directory each start begins empty", async () => {
  const first = await start(undefined);
  await send(first, "lost");
  await first.stop();
  const second = await start(undefined);
  expect([second.isNew, (await depthOf(second, "Work")).waiting]).toEqual([true, 0]);
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
