/** Makes the handler of a queue function. It parses the messages and reports each failed one, so that only failed messages return. */
import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import * as z from "zod/mini";
import { withDeadline } from "#shared/deadline.ts";
import { errorFields, log } from "#shared/log.ts";

export interface Received<Message> {
  readonly message: Message;
  /** The queue has delivered this message before. */
  readonly isRepeat: boolean;
  /** Milliseconds until Lambda stops the function. */
  readonly remainingMs: () => number;
}

/** The result of each message, in the order of the batch. */
export type Ends = readonly PromiseSettledResult<unknown>[];

/** Seconds until a failed message returns: 2, 4, 8 …, in place of the queue's visibility time-out. */
const returnSeconds = (receiveCount: number): number => Math.min(60, 2 ** receiveCount);

/** `returnIn` sets when a failed message becomes visible again. */
export function queueConsumer<S extends z.ZodMiniType>(
  schema: S,
  work: (batch: readonly Received<z.output<S>>[]) => Promise<Ends>,
  returnIn: (receiptHandle: string, seconds: number) => Promise<void>,
): (event: SQSEvent, context?: Context) => Promise<SQSBatchResponse> {
  const remainingMs = (context: Context | undefined) => (): number =>
    context?.getRemainingTimeInMillis() ?? Number.POSITIVE_INFINITY;

  async function returnMessage(record: SQSRecord, error: unknown): Promise<{ itemIdentifier: string }> {
    log.error("message failed", { messageId: record.messageId, ...errorFields(error) });
    // A failure here costs time only: the message returns after the visibility time-out.
    await returnIn(record.receiptHandle, returnSeconds(receiveCount(record))).catch(() => undefined);
    return { itemIdentifier: record.messageId };
  }

  return async ({ Records }, context) => {
    const failed: Promise<{ itemIdentifier: string }>[] = [];
    const readable: { record: SQSRecord; received: Received<z.output<S>> }[] = [];
    for (const record of Records) {
      const parsed = z.safeParse(schema, jsonOf(record.body));
      // An invalid message fails each time, so it ends in the dead-letter queue with its body.
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

  /** Work that throws fails every message. */
  async function settled(batch: readonly Received<z.output<S>>[]): Promise<Ends> {
    try {
      return await work(batch);
    } catch (reason) {
      return batch.map(() => ({ status: "rejected", reason }));
    }
  }
}

/** For work on a single message. The messages of a batch run concurrently. */
export const eachAlone =
  <Message>(work: (received: Received<Message>) => Promise<unknown>) =>
  (batch: readonly Received<Message>[]): Promise<Ends> =>
    Promise.allSettled(batch.map(work));

const receiveCount = ({ attributes }: SQSRecord): number => Number(attributes.ApproximateReceiveCount);

/** Undefined for text that is not JSON, which fits no schema. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
