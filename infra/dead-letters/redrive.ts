/** Works off a queue of dead letters, message by message: what is done is removed, what fails stays. */
import * as z from "zod/mini";
import type { AwsCall } from "#shared/aws/json-call.ts";

const Message = z.object({
  MessageId: z.string(),
  ReceiptHandle: z.string(),
  Body: z.string(),
  Attributes: z.object({ SentTimestamp: z.string(), MessageGroupId: z.optional(z.string()) }),
});
export type Message = z.infer<typeof Message>;

export interface Redriven {
  readonly done: number;
  readonly failed: number;
}

const AT_ONCE = 10;
/** A queue in parts may answer a short look with nothing although it holds something. */
const LOOK_SECONDS = 1;
/** Nobody else gets a message meanwhile; what failed comes back then. */
const HELD_SECONDS = 120;

/**
 * Until the queue shows nothing any more. What came after the beginning is left alone, so that a message that fails at once and
 * comes back is not done for ever. A message whose removal was lost is done twice, which all who take them expect.
 */
export async function redrive(
  sqs: AwsCall,
  url: string,
  work: (message: Message) => Promise<void>,
  now: () => number = Date.now,
): Promise<Redriven> {
  const begun = now();
  const total = { done: 0, failed: 0 };
  for (;;) {
    const messages = (await receive(sqs, url)).filter(({ Attributes }) => Number(Attributes.SentTimestamp) <= begun);
    if (messages.length === 0) return total;
    for (const message of messages) {
      try {
        await work(message);
        await sqs("DeleteMessage", { QueueUrl: url, ReceiptHandle: message.ReceiptHandle });
        total.done += 1;
      } catch (error) {
        console.error(`message ${message.MessageId}: ${error instanceof Error ? error.message : String(error)}`);
        total.failed += 1;
      }
    }
  }
}

const Received = z.object({ Messages: z.nullish(z.array(Message)) });

async function receive(sqs: AwsCall, QueueUrl: string): Promise<readonly Message[]> {
  const answer = await sqs("ReceiveMessage", {
    QueueUrl,
    MaxNumberOfMessages: AT_ONCE,
    WaitTimeSeconds: LOOK_SECONDS,
    VisibilityTimeout: HELD_SECONDS,
    MessageSystemAttributeNames: ["SentTimestamp", "MessageGroupId"],
  });
  return Received.parse(answer).Messages ?? [];
}

const COUNTS = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"] as const;

const Counted = z.object({ Attributes: z.record(z.string(), z.string()) });

/** As the queue reckons it, with those that have just failed again. */
export async function countMessages(sqs: AwsCall, QueueUrl: string): Promise<number> {
  const { Attributes } = Counted.parse(await sqs("GetQueueAttributes", { QueueUrl, AttributeNames: COUNTS }));
  return COUNTS.reduce((sum, name) => sum + Number(Attributes[name]), 0);
}
