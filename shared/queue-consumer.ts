/** Owns the batch of a queue function, so that the work sees one parsed message. Fails closed: what was not done comes back. */
import type { SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import * as z from "zod/mini";
import { errorFields, log, withLogContext } from "#shared/log.ts";

export interface Received<Message> {
  readonly message: Message;
  /** The queue has handed this message out before. */
  readonly isRepeat: boolean;
}

/** Seconds until a failed message comes back: 2, 4, 8 … instead of the queue's whole visibility time-out. */
const returnSeconds = (receiveCount: number): number => Math.min(60, 2 ** receiveCount);

/** `returnIn` sets when a failed message becomes visible again. */
export function queueConsumer<S extends z.ZodMiniType>(
  schema: S,
  work: (received: Received<z.output<S>>) => Promise<void>,
  returnIn: (receiptHandle: string, seconds: number) => Promise<void>,
): (event: SQSEvent) => Promise<SQSBatchResponse> {
  /** A message that is not ours fails each time and so ends in the dead-letter queue with its body. */
  async function consume(record: SQSRecord): Promise<boolean> {
    const receiveCount = Number(record.attributes.ApproximateReceiveCount);
    try {
      const message = z.parse(schema, JSON.parse(record.body));
      await work({ message, isRepeat: receiveCount > 1 });
      return true;
    } catch (error) {
      log.error("message failed", errorFields(error));
      // Not being able to say so costs time only: the message comes back by itself.
      await returnIn(record.receiptHandle, returnSeconds(receiveCount)).catch(() => undefined);
      return false;
    }
  }

  return async ({ Records }) => {
    const done = await Promise.all(
      Records.map((record) => withLogContext({ messageId: record.messageId }, () => consume(record))),
    );
    const failed = Records.filter((_, index) => done[index] !== true);
    return { batchItemFailures: failed.map(({ messageId }) => ({ itemIdentifier: messageId })) };
  };
}
