/** Sends messages to the SQS queues. SQS may deliver a message twice, so every consumer must be idempotent. */
import {
  type BatchResultErrorEntry,
  ChangeMessageVisibilityCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import * as z from "zod/mini";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";
import { Pace } from "#shared/aws/pace.ts";
import { setting } from "#shared/config.ts";
import { QueueBusy } from "#shared/errors.ts";
import { oncePerInstance } from "#shared/instance.ts";
import * as limits from "#shared/limits.ts";
import { Id } from "#shared/schema.ts";

export const sqsClient = (settings: ClientSettings = {}): SQSClient => new SQSClient(clientConfig(settings));

interface Grouped {
  readonly companyId: number;
  readonly isBulk?: true | undefined;
}

/**
 * SQS shares the consumers fairly between message groups. A company has a second group for events about single records of bulk jobs,
 * because a job can cause thousands of them and must not delay other events.
 */
export const messageGroup = ({ companyId, isBulk }: Grouped): string =>
  isBulk === true ? `${companyId}-bulk` : String(companyId);

export interface Queued<Message extends Grouped = Grouped> {
  readonly message: Message;
  /** More than 900 seconds count as 900, the maximum of SQS. The consumer then sends a new message for the rest of the delay. */
  readonly delaySeconds: number;
}

export interface DeliveryQueue {
  /**
   * Throws QueueBusy if SQS has still not accepted all messages shortly before the deadline. Throws another error if a message is invalid.
   * In both cases, SQS may have accepted other messages.
   */
  send(entries: readonly Queued[]): Promise<void>;
  /** Makes a received message visible again after `seconds`, instead of after the visibility timeout of the queue. */
  returnIn(receiptHandle: string, seconds: number): Promise<void>;
}

const BATCH = 10;

export const deliveryQueue = /* @__PURE__ */ oncePerInstance(
  (): DeliveryQueue => openQueue(setting("DELIVERY_QUEUE_URL")),
);

export function openQueue(queueUrl: string, sqs: SQSClient = sqsClient()): DeliveryQueue {
  const pace = new Pace(QueueBusy);
  return {
    returnIn: async (ReceiptHandle, VisibilityTimeout) => {
      const change = { QueueUrl: queueUrl, ReceiptHandle, VisibilityTimeout };
      await sqs.send(new ChangeMessageVisibilityCommand(change));
    },
    send: async (messages) => {
      const refused: BatchResultErrorEntry[] = [];
      await pace.send(messages.map(entryOf), BATCH, async (pending) => {
        const { Failed = [] } = await sqs.send(
          new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries: [...pending] }),
        );
        // If the sender is at fault, SQS would refuse the message each time, so `pace` does not send it again.
        refused.push(...Failed.filter(({ SenderFault }) => SenderFault));
        const left = new Set(Failed.flatMap(({ Id, SenderFault }) => (SenderFault ? [] : [Id])));
        return pending.filter(({ Id }) => left.has(Id));
      });
      const [first] = refused;
      if (first === undefined) return;
      const count = `${refused.length} of ${messages.length} messages`;
      throw new Error(`the queue refused ${count}, the first one as ${first.Code}`);
    },
  };
}

const entryOf = ({ message, delaySeconds }: Queued, index: number) => ({
  Id: String(index),
  MessageBody: JSON.stringify(message),
  DelaySeconds: Math.min(delaySeconds, limits.queueDelaySeconds),
  MessageGroupId: messageGroup(message),
});

export async function sendText(QueueUrl: string, MessageBody: string, sqs: SQSClient = sqsClient()): Promise<void> {
  await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody }));
}

/** Rounds up to whole seconds, at most 900, the longest delay of SQS. */
export const delaySecondsUntil = (dueMs: number, nowMs: number): number =>
  Math.min(limits.queueDelaySeconds, Math.max(0, Math.ceil((dueMs - nowMs) / 1_000)));

export interface JobId {
  readonly companyId: number;
  readonly id: number;
}

export interface JobMessage extends JobId {
  readonly kind: "import" | "export" | "bulk";
}

/** Returns a list with the job, because messages of S3 to the import queue name several jobs or none. */
export const oneJob = (kind: JobMessage["kind"]) =>
  z.pipe(
    z.object({ kind: z.literal(kind), companyId: Id, id: Id }),
    z.transform(({ companyId, id }): JobId[] => [{ companyId, id }]),
  );

export interface JobQueue {
  send(message: JobMessage): Promise<void>;
  returnIn(kind: JobMessage["kind"], receiptHandle: string, seconds: number): Promise<void>;
}

/** Each kind of job has a queue and a function, so that one kind does not delay another. */
const queueSettings = { import: "IMPORT_QUEUE_URL", export: "EXPORT_QUEUE_URL", bulk: "BULK_QUEUE_URL" } as const;

/** Returns the job queues. The environment variables are read when the first message is sent. */
export function openJobQueues(open: () => SQSClient = sqsClient): JobQueue {
  let client: SQSClient | undefined;
  const sqs = (): SQSClient => {
    client ??= open();
    return client;
  };
  const urlOf = (kind: JobMessage["kind"]): string => setting(queueSettings[kind]);
  return {
    send: async (message) => {
      const command = new SendMessageCommand({
        QueueUrl: urlOf(message.kind),
        MessageBody: JSON.stringify(message),
        MessageGroupId: String(message.companyId),
      });
      await sqs().send(command);
    },
    returnIn: async (kind, ReceiptHandle, VisibilityTimeout) => {
      const change = { QueueUrl: urlOf(kind), ReceiptHandle, VisibilityTimeout };
      await sqs().send(new ChangeMessageVisibilityCommand(change));
    },
  };
}
