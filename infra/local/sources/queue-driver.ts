/**
 * Reads the event source of a queue. It receives messages even while all invocations are busy, so that a message group with many messages
 * does not delay the messages of other groups.
 */
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  type Message,
  ReceiveMessageCommand,
} from "@aws-sdk/client-sqs";
import { GROUP_ATTRIBUTE, type QueueServer } from "../engines/queues.ts";
import type { LocalFunction } from "../runtime/function.ts";
import { REGION } from "../servers/address.ts";
import { nameOfArn, queueUrl } from "../template/names.ts";
import type { Mapping } from "../template/stack.ts";
import { FairQueue } from "./fair-queue.ts";
import { type Driver, failedItems } from "./poller.ts";

interface QueueSource {
  readonly mapping: Mapping;
  readonly target: Pick<LocalFunction, "invoke">;
  readonly queues: QueueServer;
  readonly visibilitySeconds: number;
  readonly concurrency: number;
}

/** SQS's limits for one call: at most 10 messages, and at most 20 s of waiting. */
export const CALL_LIMIT = 10;
const WAIT_SECONDS = 20;
/** The maximum visibility timeout of SQS. Messages may wait in this process for longer than the queue's own timeout. */
const MAX_VISIBILITY_SECONDS = 43_200;

type Messages = readonly Message[];

export function queueDriver(source: QueueSource): Driver<Messages> {
  const { mapping, target, queues, visibilitySeconds, concurrency } = source;
  const QueueUrl = queueUrl(queues.endpoint, nameOfArn(mapping.EventSourceArn));
  const waiting = new FairQueue<Message>((message) => groupOf(message) ?? "");

  /** Deletes processed messages. A failed one becomes visible again after the queue's timeout, or a time that the function has chosen. */
  async function process(messages: Messages): Promise<void> {
    const visible = entriesOf(messages).map((entry) => ({ ...entry, VisibilityTimeout: visibilitySeconds }));
    await queues.sqs.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries: visible }));
    const failed = new Set(await failedOf(messages));
    const Entries = entriesOf(messages.filter((one) => !failed.has(one)));
    if (Entries.length > 0) await queues.sqs.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
  }

  async function failedOf(messages: Messages): Promise<Messages> {
    let payload: string;
    try {
      payload = await target.invoke({ Records: messages.map((one) => eventRecord(one, mapping.EventSourceArn)) });
    } catch {
      // Do not log the error, because the function has logged it.
      return messages;
    }
    const failed = failedItems(payload, new Set(messages.map(idOf)));
    return failed === "all" ? messages : messages.filter((one) => failed.has(idOf(one)));
  }

  return {
    id: mapping.id,
    concurrency,
    fetchesAhead: true,
    async fetch(abortSignal) {
      const command = new ReceiveMessageCommand({
        QueueUrl,
        MaxNumberOfMessages: CALL_LIMIT,
        WaitTimeSeconds: WAIT_SECONDS,
        VisibilityTimeout: MAX_VISIBILITY_SECONDS,
        MessageSystemAttributeNames: ["All"],
        MessageAttributeNames: ["All"],
      });
      const { Messages = [] } = await queues.sqs.send(command, { abortSignal });
      for (const message of Messages) waiting.push(message);
      return Messages.length > 0;
    },
    take() {
      const batch = Array.from({ length: mapping.BatchSize }, () => waiting.take()).filter((one) => one !== undefined);
      return batch.length === 0 ? undefined : batch;
    },
    process: (messages) =>
      process(messages).finally(() => {
        for (const message of messages) waiting.done(message);
      }),
  };
}

const idOf = ({ MessageId }: Message): string => String(MessageId);
const groupOf = ({ MessageAttributes }: Message): string | undefined =>
  MessageAttributes?.[GROUP_ATTRIBUTE]?.StringValue;

/** Returns the entries of a batch call to SQS. Failed entries are ignored, because SQS fails one only if its message no longer exists. */
const entriesOf = (messages: Messages) => messages.map(({ ReceiptHandle }, i) => ({ Id: String(i), ReceiptHandle }));

const eventRecord = (message: Message, eventSourceARN: string): object => ({
  messageId: message.MessageId,
  receiptHandle: message.ReceiptHandle,
  body: message.Body,
  attributes: { ...message.Attributes, MessageGroupId: groupOf(message) },
  // Leave out `GROUP_ATTRIBUTE`, which exists only in the local service. The service itself sends its messages without attributes.
  messageAttributes: {},
  md5OfBody: message.MD5OfBody,
  eventSource: "aws:sqs",
  eventSourceARN,
  awsRegion: REGION,
});
