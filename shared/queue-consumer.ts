/**
 * Makes the handler of a Lambda function that reads an SQS queue. The handler reports the failed messages, so that only these return to the
 * queue.
 */
import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import * as z from "zod/mini";
import { withDeadline } from "#shared/deadline.ts";
import { errorFields, log } from "#shared/log.ts";

export interface Received<Message> {
  readonly message: Message;
  readonly isRepeat: boolean;
  /** Returns the milliseconds until Lambda stops the function. */
  readonly remainingMs: () => number;
}

export type Ends = readonly PromiseSettledResult<unknown>[];

/**
 * Returns the seconds after which a failed message becomes visible in the queue again: 2 after the first failure, then 4, 8 and so on, at
 * most 60. Without this, the message would become visible only at the end of the queue's visibility timeout.
 */
const returnSeconds = (receiveCount: number): number => Math.min(60, 2 ** receiveCount);

/**
 * Returns the Lambda handler. `work` handles a batch and returns one result for each message, in the same order. `returnIn` makes a failed
 * message visible again after a number of seconds.
 */
export function queueConsumer<S extends z.ZodMiniType>(
  schema: S,
  work: (batch: readonly Received<z.output<S>>[]) => Promise<Ends>,
  returnIn: (receiptHandle: string, seconds: number) => Promise<void>,
): (event: SQSEvent, context?: Context) => Promise<SQSBatchResponse> {
  const remainingMs = (context: Context | undefined) => (): number =>
    context?.getRemainingTimeInMillis() ?? Number.POSITIVE_INFINITY;

  async function returnMessage(record: SQSRecord, error: unknown): Promise<{ itemIdentifier: string }> {
    log.error("message failed", { messageId: record.messageId, ...errorFields(error) });
    // An error is ignored here, because it only means that the message becomes visible later, after the queue's visibility timeout.
    await returnIn(record.receiptHandle, returnSeconds(receiveCount(record))).catch(() => undefined);
    return { itemIdentifier: record.messageId };
  }

  return async ({ Records }, context) => {
    const failed: Promise<{ itemIdentifier: string }>[] = [];
    const readable: { record: SQSRecord; received: Received<z.output<S>> }[] = [];
    for (const record of Records) {
      const parsed = z.safeParse(schema, jsonOf(record.body));
      // An invalid message fails each time it is received, so SQS finally moves it to the dead-letter queue.
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

  /** Runs `work`. If it throws, every message of the batch counts as failed with this error. */
  async function settled(batch: readonly Received<z.output<S>>[]): Promise<Ends> {
    try {
      return await work(batch);
    } catch (reason) {
      return batch.map(() => ({ status: "rejected", reason }));
    }
  }
}

/** Converts a function for a single message to one for a batch. It handles the messages of a batch concurrently. */
export const eachAlone =
  <Message>(work: (received: Received<Message>) => Promise<unknown>) =>
  (batch: readonly Received<Message>[]): Promise<Ends> =>
    Promise.allSettled(batch.map(work));

const receiveCount = ({ attributes }: SQSRecord): number => Number(attributes.ApproximateReceiveCount);

/** Returns undefined if the text is not JSON. The message then fails the check of its schema, because no schema accepts undefined. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
