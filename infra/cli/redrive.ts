/** Works off a queue of dead letters, message by message: what is done is removed, what fails stays. */
import {
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  type SQSClient,
} from "@aws-sdk/client-sqs";
import * as z from "zod/mini";

/** The fields of an SQS message that a redrive needs. */
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
  sqs: SQSClient,
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
        await sqs.send(new DeleteMessageCommand({ QueueUrl: url, ReceiptHandle: message.ReceiptHandle }));
        total.done += 1;
      } catch (error) {
        console.error(`message ${message.MessageId}: ${error instanceof Error ? error.message : String(error)}`);
        total.failed += 1;
      }
    }
  }
}

async function receive(sqs: SQSClient, QueueUrl: string): Promise<readonly Message[]> {
  const command = new ReceiveMessageCommand({
    QueueUrl,
    MaxNumberOfMessages: AT_ONCE,
    WaitTimeSeconds: LOOK_SECONDS,
    VisibilityTimeout: HELD_SECONDS,
    MessageSystemAttributeNames: ["SentTimestamp", "MessageGroupId"],
  });
  return z.array(Message).parse((await sqs.send(command)).Messages ?? []);
}

/** An estimate, as SQS gives it. It counts messages that have just failed again. */
export async function countMessages(sqs: SQSClient, QueueUrl: string): Promise<number> {
  const { Attributes = {} } = await sqs.send(
    new GetQueueAttributesCommand({
      QueueUrl,
      AttributeNames: ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    }),
  );
  return Object.values(Attributes).reduce((sum, count) => sum + Number(count), 0);
}
