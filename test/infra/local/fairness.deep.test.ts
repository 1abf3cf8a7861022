/**
 * Tests that the local service's queues are fair: if one company has many waiting messages, they must not delay the few messages of another
 * company.
 */
import { CreateQueueCommand, SendMessageBatchCommand } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { queueUrl } from "../../../infra/local/names.ts";
import { FairQueue, startQueueSource } from "../../../infra/local/queue-source.ts";
import { EventSourceMapping, LambdaFunction } from "../../../infra/local/resources.ts";
import { depthOf, type QueueServer, startQueues } from "../../../infra/local/sqs.ts";

const NAME = "Fair";
const QUEUE = `arn:aws:sqs:us-east-1:000000000000:${NAME}`;
const Event = z.object({
  Records: z.array(
    z.object({
      body: z.string(),
      attributes: z.looseObject({ MessageGroupId: z.optional(z.string()), ApproximateReceiveCount: z.string() }),
      messageAttributes: z.record(z.string(), z.unknown()),
    }),
  ),
});

describe("a fair queue", () => {
  it("serves the group with the fewest messages in work first, and among equals the longest waiting", () => {
    const queue = new FairQueue<{ group: string; sinceMs: number; name: string }>();
    for (const [i, name] of ["a1", "a2", "a3", "b1"].entries()) queue.push({ group: name[0] ?? "", sinceMs: i, name });
    const taken = Array.from({ length: 4 }, () => queue.take());
    expect(taken.map((entry) => entry?.name)).toEqual(["a1", "b1", "a2", "a3"]);
    expect(queue.size).toBe(0);
    expect(queue.take()).toBeUndefined();
    // The queue first serves the group with the fewest messages in flight (taken but not yet done). The groups a and b each have one such
    // message, and group c has none, so the message of group c is taken next.
    for (const entry of taken.slice(2)) if (entry !== undefined) queue.done(entry);
    queue.push({ group: "b", sinceMs: 5, name: "b2" });
    queue.push({ group: "c", sinceMs: 6, name: "c1" });
    expect(queue.take()?.name).toBe("c1");
  });
});

describe("the local queue", () => {
  let queues: QueueServer;
  beforeAll(async () => {
    queues = await startQueues();
  });
  afterAll(() => queues.stop());

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
    const source = startQueueSource({
      mapping: {
        ...z.parse(EventSourceMapping, { EventSourceArn: QUEUE, FunctionName: "f", BatchSize: 1 }),
        id: "Mapping",
        name: "Mapping",
      },
      target: {
        spec: {
          ...z.parse(LambdaFunction, {
            Handler: "index.handler",
            Runtime: "nodejs24.x",
            LoggingConfig: { LogFormat: "JSON" },
          }),
          id: "f",
          name: "f",
          directory: "",
          file: "f",
        },
        calls: () => seen.length,
        async invoke(event) {
          for (const { body, attributes, messageAttributes } of z.parse(Event, event).Records) {
            seen.push(body);
            expect(attributes).toMatchObject({ MessageGroupId: body.split(" ")[0], ApproximateReceiveCount: "1" });
            expect(messageAttributes).toEqual({});
          }
          await new Promise<void>((go) => open.push(go));
          return "null";
        },
        stop: () => Promise.resolve(),
      },
      queues,
      concurrency: 4,
      log: (text) => seen.push(text),
    });
    const until = async (isSo: () => boolean) => {
      while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    await until(() => seen.length === 4);
    await send("quiet", ["quiet 1", "quiet 2"]);
    // The test waits until the local service has taken all 102 messages from the queue. 100 of them belong to the busy group, and four of
    // these are already being processed. In the order of their arrival, the other 96 messages of the busy group would come before the two
    // messages of the quiet group.
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
});
