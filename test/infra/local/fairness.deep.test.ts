/** Tests that many waiting messages of one company do not delay the few messages of another company in the local queues. */
import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
} from "@aws-sdk/client-sqs";
import { afterAll, describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { depthOf, startQueues } from "../../../infra/local/engines/queues.ts";
import { FairQueue } from "../../../infra/local/sources/fair-queue.ts";
import { startPoller } from "../../../infra/local/sources/poller.ts";
import { queueDriver } from "../../../infra/local/sources/queue-driver.ts";
import { queueArn, queueUrl } from "../../../infra/local/template/names.ts";
import { schemas } from "../../../infra/local/template/resources.ts";

const NAME = "Fair";
const mappingOf = (name: string) => {
  const FunctionResponseTypes = ["ReportBatchItemFailures"];
  const settings = { EventSourceArn: queueArn(name), FunctionName: "f", BatchSize: 1, FunctionResponseTypes };
  return { ...z.parse(schemas["AWS::Lambda::EventSourceMapping"], settings), id: name, name };
};
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

it("a fair queue serves the group with the fewest messages in work first, and among equals the least recently served", () => {
  const queue = new FairQueue<string>((name) => name.slice(0, 1));
  for (const name of ["a1", "a2", "a3", "b1"]) queue.push(name);
  const taken = Array.from({ length: 4 }, () => queue.take());
  expect(taken).toEqual(["a1", "b1", "a2", "a3"]);
  expect(queue.take()).toBeUndefined();
  // Groups a and b each have a message in work, and group c has none.
  for (const name of ["a2", "a3"]) queue.done(name);
  queue.push("b2");
  queue.push("c1");
  expect(queue.take()).toBe("c1");
});

const queues = await startQueues();
afterAll(() => queues.stop());

describe("the local queue", () => {
  it("serves another group before a backlog, passes the group to functions, and hands out each message once", async () => {
    const QueueUrl = queueUrl(queues.endpoint, NAME);
    await queues.sqs.send(new CreateQueueCommand({ QueueName: NAME, Attributes: { VisibilityTimeout: "600" } }));
    const send = (MessageGroupId: string, bodies: string[]) =>
      queues.sqs.send(
        new SendMessageBatchCommand({
          QueueUrl,
          Entries: bodies.map((MessageBody, i) => ({ Id: String(i), MessageBody, MessageGroupId })),
        }),
      );
    for (let i = 0; i < 10; i++)
      await send(
        "busy",
        Array.from({ length: 10 }, (_, k) => `busy ${i * 10 + k}`),
      );
    const seen: string[] = [];
    const open: (() => void)[] = [];
    const release = () => {
      for (const go of open.splice(0)) go();
    };
    const driver = queueDriver({
      mapping: mappingOf(NAME),
      target: {
        async invoke(event) {
          for (const { body, attributes } of z.parse(Event, event).Records) {
            seen.push(body);
            expect(attributes).toMatchObject({ MessageGroupId: body.split(" ")[0], ApproximateReceiveCount: "1" });
          }
          await new Promise<void>((go) => open.push(go));
          return "null";
        },
      },
      queues,
      visibilitySeconds: 600,
      concurrency: 4,
    });
    const source = startPoller(driver, (text) => void seen.push(text));
    const until = async (isSo: () => boolean) => {
      while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    await until(() => seen.length === 4);
    await send("quiet", ["quiet 1", "quiet 2"]);
    // The service has taken all 102 messages and processes four. In the order of their arrival, the two quiet ones would be the last.
    for (let inFlight = 0; inFlight < 102; ) ({ inFlight } = await depthOf(queues, NAME));
    release();
    await until(() => seen.length === 8);
    expect(seen.slice(4).filter((body) => body.startsWith("quiet"))).toEqual(["quiet 1", "quiet 2"]);
    while (seen.length < 102 || open.length > 0) {
      release();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(new Set(seen).size).toBe(102);
    for (let inFlight = 1; inFlight > 0; ) ({ inFlight } = await depthOf(queues, NAME));
    await source.stop();
    expect(await depthOf(queues, NAME)).toEqual({ waiting: 0, inFlight: 0, delayed: 0 });
  });

  it("hands out a failed message again after the time that the function has chosen, before the queue's own timeout", async () => {
    const name = "Chosen";
    const QueueUrl = queueUrl(queues.endpoint, name);
    const VisibilityTimeout = "43200";
    await queues.sqs.send(new CreateQueueCommand({ QueueName: name, Attributes: { VisibilityTimeout } }));
    const counts: string[] = [];
    const driver = queueDriver({
      mapping: mappingOf(name),
      target: {
        async invoke(event) {
          const [record] = z.parse(Event, event).Records;
          counts.push(record?.attributes.ApproximateReceiveCount ?? "");
          if (counts.length === 3) return '{"batchItemFailures":[]}';
          const ReceiptHandle = record?.receiptHandle;
          await queues.sqs.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout: 1 }));
          return JSON.stringify({ batchItemFailures: [{ itemIdentifier: record?.messageId }] });
        },
      },
      queues,
      visibilitySeconds: 43_200,
      concurrency: 1,
    });
    const source = startPoller(driver, () => undefined);
    await queues.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "a", MessageGroupId: "a" }));
    await expect.poll(() => counts, { interval: 20 }).toEqual(["1", "2", "3"]);
    await source.stop();
  });
});
