/** Tests which messages of a dead-letter queue `npm run dead-letters -- redrive` processes, and that it ends. */
import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
} from "@aws-sdk/client-sqs";
import { afterAll, expect, test, vi } from "vitest";
import { type Redriven, redrive } from "../../../infra/cli/redrive.ts";
import { startQueues } from "../../../infra/local/engines/queues.ts";

const server = await startQueues();
afterAll(() => server.stop());

const create = async (QueueName: string, Attributes: Record<string, string> = {}): Promise<string> =>
  (await server.sqs.send(new CreateQueueCommand({ QueueName, Attributes }))).QueueUrl ?? "";
const send = (QueueUrl: string, MessageBody: string) =>
  server.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody }));

/** Returns the URL of a dead-letter queue with 25 messages from after `begunMs`, and then one from before. */
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
