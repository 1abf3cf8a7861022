/** Owns the batch of a queue function, so that the work sees one parsed message. Fails closed: what was not done comes back. */
import type { SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import * as z from "zod/mini";
import { errorFields, log, withLogContext } from "#shared/log.ts";

export interface Received<Message> {
  readonly message: Message;
  /** The queue has handed this message out before. */
  readonly isRepeat: boolean;
}

export function queueConsumer<S extends z.ZodMiniType>(
  schema: S,
  work: (received: Received<z.output<S>>) => Promise<void>,
): (event: SQSEvent) => Promise<SQSBatchResponse> {
  /** A message that is not ours fails each time and so ends in the dead-letter queue with its body. */
  async function consume(record: SQSRecord): Promise<boolean> {
    try {
      const message = z.parse(schema, JSON.parse(record.body));
      await work({ message, isRepeat: Number(record.attributes.ApproximateReceiveCount) > 1 });
      return true;
    } catch (error) {
      log.error("message failed", errorFields(error));
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
