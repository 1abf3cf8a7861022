/** Tests that a function which reads a queue returns exactly the failed messages of a batch, and logs the reason of each failure. */
import type { SQSRecord } from "aws-lambda";
import { afterEach, beforeEach, expect, type MockInstance, test, vi } from "vitest";
import * as z from "zod/mini";
import { eachAlone, queueConsumer } from "#shared/queue-consumer.ts";

const Message = z.object({ n: z.int() });

const record = (messageId: string, body: string, receives = 1): SQSRecord => ({
  messageId,
  receiptHandle: `handle of ${messageId}`,
  body,
  attributes: {
    ApproximateReceiveCount: String(receives),
    SentTimestamp: "0",
    SenderId: "s",
    ApproximateFirstReceiveTimestamp: "0",
  },
  messageAttributes: {},
  md5OfBody: "",
  eventSource: "aws:sqs",
  eventSourceARN: "arn",
  awsRegion: "eu-west-1",
});

let logged: MockInstance<typeof console.error>;
// The test files of a worker share the console and the environment variables, so each test restores both.
beforeEach(() => {
  logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
  vi.stubEnv("AWS_LAMBDA_LOG_FORMAT", "JSON");
});
afterEach(() => {
  logged.mockRestore();
  vi.unstubAllEnvs();
});

test("only unreadable and failed messages return to the queue, after a delay that grows with each receipt, and the log says why", async () => {
  const returned: [string, number][] = [];
  const work = eachAlone<z.infer<typeof Message>>(async ({ message: { n } }) => {
    if (n === 2) throw new Error("two is refused");
  });
  const consume = queueConsumer(Message, work, async (handle, seconds) => void returned.push([handle, seconds]));
  const Records = [
    record("done", '{"n":1}'),
    record("failed", '{"n":2}', 3),
    record("no number", '{"n":"x"}'),
    record("no JSON", "{", 9),
  ];
  const { batchItemFailures } = await consume({ Records });
  expect(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier).toSorted()).toEqual([
    "failed",
    "no JSON",
    "no number",
  ]);
  expect(new Map(returned)).toEqual(
    new Map([
      ["handle of failed", 8],
      ["handle of no number", 2],
      ["handle of no JSON", 60],
    ]),
  );
  expect(JSON.stringify(logged.mock.calls)).toContain("two is refused");
});

test("a message that cannot be made visible earlier still returns", async () => {
  const work = () => Promise.resolve([{ status: "rejected", reason: new Error("fails") } as const]);
  const consume = queueConsumer(Message, work, () => Promise.reject(new Error("the queue fails")));
  expect(await consume({ Records: [record("a", '{"n":1}')] })).toEqual({
    batchItemFailures: [{ itemIdentifier: "a" }],
  });
});

test("if the work for a batch fails as a whole, or returns no result for a message, the messages return", async () => {
  const both = [record("a", '{"n":1}'), record("b", '{"n":2}')];
  const none = queueConsumer(
    Message,
    () => Promise.reject(new Error("fails")),
    async () => undefined,
  );
  expect((await none({ Records: both })).batchItemFailures).toHaveLength(2);
  const first = queueConsumer(
    Message,
    () => Promise.resolve([{ status: "fulfilled", value: 1 } as const]),
    async () => undefined,
  );
  expect(await first({ Records: both })).toEqual({ batchItemFailures: [{ itemIdentifier: "b" }] });
});
