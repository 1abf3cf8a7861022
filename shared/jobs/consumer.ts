/** The queue consumer of import and export jobs: one run for each job that a message names. */
import type { Context, SQSBatchResponse, SQSEvent } from "aws-lambda";
import type * as z from "zod/mini";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { openObjects } from "#shared/aws/s3.ts";
import { type JobId, type JobMessage, openJobQueues } from "#shared/aws/sqs.ts";
import { setting } from "#shared/config.ts";
import { contextOn, type JobContext } from "#shared/context.ts";
import { openTable } from "#shared/db/table.ts";
import { LeaseLost } from "#shared/jobs/lease.ts";
import { eachAlone, queueConsumer } from "#shared/queue-consumer.ts";

/** No client waits for an answer, so a throttled write is retried for up to 15 seconds. */
const ATTEMPTS = 5;

let opened: JobContext | undefined;

/** Opens nothing before the first message. */
function jobContext(): JobContext {
  opened ??= {
    ...contextOn(openTable(setting("TABLE_NAME"), dynamoClient({ attempts: ATTEMPTS }))),
    objects: openObjects(),
    jobs: openJobQueues(),
  };
  return opened;
}

type Run = (context: JobContext, key: JobId, remainingMs: () => number) => Promise<void>;

/** `messages` parses a message into the keys of its jobs, usually one. */
export const jobConsumer = (
  kind: JobMessage["kind"],
  messages: z.ZodMiniType<JobId[]>,
  run: Run,
): ((event: SQSEvent, context: Context) => Promise<SQSBatchResponse>) =>
  queueConsumer(
    messages,
    eachAlone(async ({ message, remainingMs }) => {
      for (const key of message) await unlessLost(run(jobContext(), key, remainingMs));
    }),
    (receiptHandle, seconds) => jobContext().jobs.returnIn(kind, receiptHandle, seconds),
  );

/** A lost lease settles the message: another run has the job, or has ended it. */
async function unlessLost(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof LeaseLost)) throw error;
  }
}
