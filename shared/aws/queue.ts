/** The delivery queue: sends all messages of a call or throws. */
import { ChangeMessageVisibilityCommand, SendMessageBatchCommand, type SQSClient } from "@aws-sdk/client-sqs";
import { allEnded } from "#shared/all-ended.ts";
import { sqsClient } from "#shared/aws/sqs.ts";
import { setting } from "#shared/config.ts";
import { limits } from "#shared/limits.ts";

export interface Queued<Message extends { readonly companyId: number } = { readonly companyId: number }> {
  /** Sent as JSON. The company is its group in the fair queue. */
  readonly message: Message;
  /** Whole seconds, at most 900: a longer wait is made of hops. */
  readonly delaySeconds: number;
}

export interface DeliveryQueue {
  send(entries: readonly Queued[]): Promise<void>;
  /** Lets a received message come back sooner than the queue's visibility time-out would. */
  returnIn(receiptHandle: string, seconds: number): Promise<void>;
}

const BATCH = 10;
const TRIES = 3;
/** Batches on their way at once. */
const PARALLEL = 8;

let made: DeliveryQueue | undefined;

/** The one of this deployment, opened when it is first needed. */
export function deliveryQueue(): DeliveryQueue {
  made ??= openQueue(setting("DELIVERY_QUEUE_URL"));
  return made;
}

export function openQueue(queueUrl: string, sqs: SQSClient = sqsClient()): DeliveryQueue {
  /** Entries that the queue did not take are sent again; a message may come twice, which its receiver expects. */
  async function sendBatch(entries: readonly Queued[]): Promise<void> {
    let left = entries.map((entry, index) => ({
      Id: String(index),
      MessageBody: JSON.stringify(entry.message),
      DelaySeconds: Math.min(entry.delaySeconds, limits.queueDelaySeconds),
      MessageGroupId: String(entry.message.companyId),
    }));
    for (let attempt = 1; left.length > 0; attempt++) {
      if (attempt > TRIES) throw new Error(`the queue refused ${left.length} messages`);
      const { Failed } = await sqs.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries: left }));
      const failed = new Set((Failed ?? []).map(({ Id }) => Id));
      left = left.filter(({ Id }) => failed.has(Id));
    }
  }

  return {
    returnIn: async (ReceiptHandle, VisibilityTimeout) => {
      const change = { QueueUrl: queueUrl, ReceiptHandle, VisibilityTimeout };
      await sqs.send(new ChangeMessageVisibilityCommand(change));
    },
    send: async (entries) => {
      let next = 0;
      async function work(): Promise<void> {
        for (let from = next; from < entries.length; from = next) {
          next += BATCH;
          await sendBatch(entries.slice(from, from + BATCH));
        }
      }
      await allEnded(Array.from({ length: PARALLEL }, work));
    },
  };
}

/** Whole seconds until an instant, never too early, within what one message can wait. */
export const delaySecondsUntil = (dueMs: number, nowMs: number): number =>
  Math.min(limits.queueDelaySeconds, Math.max(0, Math.ceil((dueMs - nowMs) / 1_000)));
