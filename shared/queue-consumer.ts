/** Owns the batch of a queue function: its work sees parsed messages and settles each. Fails closed: what was not done comes back. */
import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import * as z from "zod/mini";
import { withDeadline } from "#shared/deadline.ts";
import { errorFields, log } from "#shared/log.ts";

export interface Received<Message> {
  readonly message: Message;
  /** The queue has handed this message out before. */
  readonly isRepeat: boolean;
  /** Until the function is stopped. */
  readonly remainingMs: () => number;
}

/** How each message of a batch ended, in their order. */
export type Ends = readonly PromiseSettledResult<unknown>[];

/** Seconds until a failed message comes back: 2, 4, 8 … instead of the queue's whole visibility time-out. */
const returnSeconds = (receiveCount: number): number => Math.min(60, 2 ** receiveCount);

/** `returnIn` sets when a failed message becomes visible again. */
export function queueConsumer<S extends z.ZodMiniType>(
  schema: S,
  work: (batch: readonly Received<z.output<S>>[]) => Promise<Ends>,
  returnIn: (receiptHandle: string, seconds: number) => Promise<void>,
): (event: SQSEvent, context?: Context) => Promise<SQSBatchResponse> {
  const remainingMs = (context: Context | undefined) => (): number =>
    context?.getRemainingTimeInMillis() ?? Number.POSITIVE_INFINITY;

  async function comeBack(record: SQSRecord, error: unknown): Promise<{ itemIdentifier: string }> {
    log.error("message failed", { messageId: record.messageId, ...errorFields(error) });
    // Not being able to say so costs time only: the message comes back by itself.
    await returnIn(record.receiptHandle, returnSeconds(receiveCount(record))).catch(() => undefined);
    return { itemIdentifier: record.messageId };
  }

  return async ({ Records }, context) => {
    const failed: Promise<{ itemIdentifier: string }>[] = [];
    const readable: { record: SQSRecord; received: Received<z.output<S>> }[] = [];
    for (const record of Records) {
      const parsed = z.safeParse(schema, jsonOf(record.body));
      // A message that is not ours fails each time and so ends in the dead-letter queue with its body.
      if (!parsed.success) failed.push(comeBack(record, parsed.error));
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
      if (end?.status !== "fulfilled") failed.push(comeBack(record, end?.reason));
    }
    return { batchItemFailures: await Promise.all(failed) };
  };

  /** Work that throws has settled none of them. */
  async function settled(batch: readonly Received<z.output<S>>[]): Promise<Ends> {
    try {
      return await work(batch);
    } catch (reason) {
      return batch.map(() => ({ status: "rejected", reason }));
    }
  }
}

/** For work that sees one message: those of a batch at the same time. */
export const eachAlone =
  <Message>(work: (received: Received<Message>) => Promise<unknown>) =>
  (batch: readonly Received<Message>[]): Promise<Ends> =>
    Promise.allSettled(batch.map(work));

const receiveCount = ({ attributes }: SQSRecord): number => Number(attributes.ApproximateReceiveCount);

/** Text that is no JSON fits no schema. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
