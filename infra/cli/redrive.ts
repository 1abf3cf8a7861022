/** Processes the messages of a dead-letter queue again. */

import { DeleteMessageCommand, ReceiveMessageCommand, type SQSClient } from "@aws-sdk/client-sqs";
import * as z from "zod/mini";
import { messageOf } from "./command/error.ts";

const Message = z.object({
  MessageId: z.string(),
  ReceiptHandle: z.string(),
  Body: z.string(),
  Attributes: z.object({ SentTimestamp: z.string(), MessageGroupId: z.optional(z.string()) }),
});
export type Message = z.infer<typeof Message>;

export interface Redrive {
  readonly name: string;
  readonly url: string;
  readonly work: (message: Message) => Promise<void>;
}

export interface Redriven {
  readonly done: number;
  readonly failed: number;
  /** False if the command ended after `IDLE_BATCHES` batches without a message to process. The queue may still contain such messages. */
  readonly isComplete: boolean;
}

const BATCH = 10;
/** Seconds of a long poll, which asks all servers of the queue. A short poll may miss messages. */
const POLL_SECONDS = 1;
/** Seconds after which a message whose processing failed becomes visible again. */
const VISIBILITY_SECONDS = 120;
/** Consecutive batches of newer or failed messages after which the command ends. New messages could otherwise keep it running. */
const IDLE_BATCHES = 100;

/**
 * Processes each message that was sent up to `begunMs` (milliseconds since 1970) once, and deletes it if `work` succeeds. Skips newer
 * messages, because a message that `work` sends to its original queue may fail there and return. SQS returns messages in any order.
 */
export async function redrive(
  sqs: SQSClient,
  { url: QueueUrl, work }: Redrive,
  begunMs: number,
  idleBatches = IDLE_BATCHES,
): Promise<Redriven> {
  let done = 0;
  // Failed messages become visible again, and must not be processed a second time.
  const failed = new Set<string>();
  for (let idle = 0; idle < idleBatches; ) {
    const messages = await receive(sqs, QueueUrl);
    if (messages.length === 0) return { done, failed: failed.size, isComplete: true };
    const wanted = messages.filter(
      ({ MessageId, Attributes }) => Number(Attributes.SentTimestamp) <= begunMs && !failed.has(MessageId),
    );
    idle = wanted.length === 0 ? idle + 1 : 0;
    for (const message of wanted) {
      try {
        await work(message);
        await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: message.ReceiptHandle }));
        done += 1;
      } catch (error) {
        console.error(`message ${message.MessageId}: ${messageOf(error)}`);
        failed.add(message.MessageId);
      }
    }
  }
  return { done, failed: failed.size, isComplete: false };
}

async function receive(sqs: SQSClient, QueueUrl: string): Promise<readonly Message[]> {
  const command = new ReceiveMessageCommand({
    QueueUrl,
    MaxNumberOfMessages: BATCH,
    WaitTimeSeconds: POLL_SECONDS,
    VisibilityTimeout: VISIBILITY_SECONDS,
    MessageSystemAttributeNames: ["SentTimestamp", "MessageGroupId"],
  });
  return z.array(Message).parse((await sqs.send(command)).Messages ?? []);
}
