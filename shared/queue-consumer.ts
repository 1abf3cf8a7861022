/** Makes the handler of a function that reads an SQS queue. Only failed messages return to the queue. */
import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import * as z from "zod/mini";
import { withDeadline } from "#shared/deadline.ts";
import { jsonOf } from "#shared/json.ts";
import { errorFields, log } from "#shared/log.ts";

export interface Received<Message> {
  readonly message: Message;
  readonly isRepeat: boolean;
  readonly remainingMs: () => number;
}

export type Ends = readonly PromiseSettledResult<unknown>[];

/** The seconds until SQS delivers a failed message again. Without them, the message would wait for the queue's visibility timeout. */
const returnSeconds = (receiveCount: number): number => Math.min(60, 2 ** receiveCount);

/** `work` returns one result for each message, in the same order. `returnIn` makes a failed message visible again after some seconds. */
export function queueConsumer<S extends z.ZodMiniType>(
  schema: S,
  work: (batch: readonly Received<z.output<S>>[]) => Promise<Ends>,
  returnIn: (receiptHandle: string, seconds: number) => Promise<void>,
): (event: SQSEvent, context?: Context) => Promise<SQSBatchResponse> {
  const remainingMs = (context: Context | undefined) => (): number =>
    context?.getRemainingTimeInMillis() ?? Number.POSITIVE_INFINITY;

  async function returnMessage(record: SQSRecord, error: unknown): Promise<{ itemIdentifier: string }> {
    log.error("message failed", { messageId: record.messageId, ...errorFields(error) });
    // If this call fails, the message is visible again after the queue's visibility timeout.
    await returnIn(record.receiptHandle, returnSeconds(receiveCount(record))).catch(() => undefined);
    return { itemIdentifier: record.messageId };
  }

  return async ({ Records }, context) => {
    const failed: Promise<{ itemIdentifier: string }>[] = [];
    const readable: { record: SQSRecord; received: Received<z.output<S>> }[] = [];
    for (const record of Records) {
      const parsed = z.safeParse(schema, jsonOf(record.body));
      // After the last attempt, SQS moves an invalid message to the dead-letter queue.
      if (!parsed.success) failed.push(returnMessage(record, parsed.error));
      else {
        const received = {
          message: parsed.data,
          isRepeat: receiveCount(record) > 1,
          remainingMs: remainingMs(context),
        };
        readable.push({ record, received });
      }
    }
    const ends = await withDeadline(remainingMs(context), () => settled(readable.map(({ received }) => received)));
    for (const [i, { record }] of readable.entries()) {
      const end = ends[i];
      if (end?.status !== "fulfilled") failed.push(returnMessage(record, end?.reason));
    }
    return { batchItemFailures: await Promise.all(failed) };
  };

  async function settled(batch: readonly Received<z.output<S>>[]): Promise<Ends> {
    try {
      return await work(batch);
    } catch (reason) {
      return batch.map(() => ({ status: "rejected", reason }));
    }
  }
}

export const eachAlone =
  <Message>(work: (received: Received<Message>) => Promise<unknown>) =>
  (batch: readonly Received<Message>[]): Promise<Ends> =>
    Promise.allSettled(batch.map(work));

const receiveCount = ({ attributes }: SQSRecord): number => Number(attributes.ApproximateReceiveCount);
