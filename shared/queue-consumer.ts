/** Owns the batch of a queue function, so that the work sees one parsed message. Fails closed: what was not done comes back. */
import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import * as z from "zod/mini";
import { errorFields, log, withLogContext } from "#shared/log.ts";

export interface Received<Message> {
  readonly message: Message;
  /** The queue has handed this message out before. */
  readonly isRepeat: boolean;
  /** Until the function is stopped. */
  readonly remainingMs: () => number;
}

/** Seconds until a failed message comes back: 2, 4, 8 … instead of the queue's whole visibility time-out. */
const returnSeconds = (receiveCount: number): number => Math.min(60, 2 ** receiveCount);

/** `returnIn` sets when a failed message becomes visible again. */
export function queueConsumer<S extends z.ZodMiniType>(
  schema: S,
  work: (received: Received<z.output<S>>) => Promise<void>,
  returnIn: (receiptHandle: string, seconds: number) => Promise<void>,
): (event: SQSEvent, context?: Context) => Promise<SQSBatchResponse> {
  /** A message that is not ours fails each time and so ends in the dead-letter queue with its body. */
  async function consume(record: SQSRecord, context: Context | undefined): Promise<boolean> {
    const receiveCount = Number(record.attributes.ApproximateReceiveCount);
    try {
      const message = z.parse(schema, JSON.parse(record.body));
      const remainingMs = (): number => context?.getRemainingTimeInMillis() ?? Number.POSITIVE_INFINITY;
      await work({ message, isRepeat: receiveCount > 1, remainingMs });
      return true;
    } catch (error) {
      log.error("message failed", errorFields(error));
      // Not being able to say so costs time only: the message comes back by itself.
      await returnIn(record.receiptHandle, returnSeconds(receiveCount)).catch(() => undefined);
      return false;
    }
  }

  return async ({ Records }, context) => {
    const done = await Promise.all(
      Records.map((record) => withLogContext({ messageId: record.messageId }, () => consume(record, context))),
    );
    const failed = Records.filter((_, index) => done[index] !== true);
    return { batchItemFailures: failed.map(({ messageId }) => ({ itemIdentifier: messageId })) };
  };
}
