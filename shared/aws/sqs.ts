/**
 * The queues of webhook deliveries, imports, exports and bulk jobs. SQS may deliver a message twice, so every consumer must be idempotent.
 */
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
import * as limits from "#shared/limits.ts";
import { Id } from "#shared/schema.ts";

export const sqsClient = (settings: ClientSettings = {}): SQSClient => new SQSClient(clientConfig(settings));

/** The fields of a message that determine its message group. */
interface Grouped {
  readonly companyId: number;
  readonly isBulk?: true | undefined;
}

/**
 * Returns the SQS message group. SQS shares the capacity of the consumers fairly between groups. Each company has two groups. Webhook
 * events that a bulk job causes for single records are in the second group, so that thousands of them do not delay the company's other
 * events.
 */
export const messageGroup = ({ companyId, isBulk }: Grouped): string =>
  isBulk === true ? `${companyId}-bulk` : String(companyId);

export interface Queued<Message extends Grouped = Grouped> {
  /** The message, which is sent as JSON. */
  readonly message: Message;
  /**
   * Whole seconds, at most 900 (the maximum of SQS). If a delivery must wait longer, the consumer of this message sends a new message for
   * the rest of the delay.
   */
  readonly delaySeconds: number;
}

export interface DeliveryQueue {
  /**
   * Sends all messages. Throws QueueBusy if SQS has not accepted all of them shortly before the caller's deadline. Throws another error if
   * SQS refuses a message as invalid. In both cases, SQS may already have accepted some or all of the other messages.
   */
  send(entries: readonly Queued[]): Promise<void>;
  /** Makes a received message visible again after `seconds`, instead of after the visibility timeout of the queue. */
  returnIn(receiptHandle: string, seconds: number): Promise<void>;
}

/** Maximum number of messages in a batch of SQS. */
const BATCH = 10;

let made: DeliveryQueue | undefined;

export function deliveryQueue(): DeliveryQueue {
  made ??= openQueue(setting("DELIVERY_QUEUE_URL"));
  return made;
}

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
        // SQS would refuse a message with a fault of the sender each time, so it is not sent again.
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

/** Sends one message to any queue. */
export async function sendText(QueueUrl: string, MessageBody: string, sqs: SQSClient = sqsClient()): Promise<void> {
  await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody }));
}

/** Returns the delay until `dueMs` in whole seconds, rounded up. It is at most 900, the longest delay that SQS allows. */
export const delaySecondsUntil = (dueMs: number, nowMs: number): number =>
  Math.min(limits.queueDelaySeconds, Math.max(0, Math.ceil((dueMs - nowMs) / 1_000)));

export interface JobId {
  readonly companyId: number;
  readonly id: number;
}

/** A message that starts or continues the work on an import, an export or a bulk job. The state of the job is in the table. */
export interface JobMessage extends JobId {
  readonly kind: "import" | "export" | "bulk";
}

/**
 * Returns a schema for a message about a job of this kind. It parses a message to a list with one job. The result is a list, because other
 * messages in a job queue, such as events of S3, may name several jobs or none.
 */
export const oneJob = (kind: JobMessage["kind"]) =>
  z.pipe(
    z.object({ kind: z.literal(kind), companyId: Id, id: Id }),
    z.transform(({ companyId, id }): JobId[] => [{ companyId, id }]),
  );

export interface JobQueue {
  send(message: JobMessage): Promise<void>;
  returnIn(kind: JobMessage["kind"], receiptHandle: string, seconds: number): Promise<void>;
}

/**
 * The name of the setting with the URL of each queue. Each kind of job has a queue and a function of its own, so that one kind of job does
 * not delay another.
 */
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
