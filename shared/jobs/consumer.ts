/** Consumes the queues of import and export jobs. Each message names one or more jobs, and each of these jobs gets one run. */
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

/** DynamoDB calls are tried this many times, for up to 15 seconds. The retries may be slow, because no client waits for an answer. */
const ATTEMPTS = 5;

let opened: JobContext | undefined;

/** Creates the context at the first message, so that loading this module makes no AWS client. */
function jobContext(): JobContext {
  opened ??= {
    ...contextOn(openTable(setting("TABLE_NAME"), dynamoClient({ attempts: ATTEMPTS }))),
    objects: openObjects(),
    jobs: openJobQueues(),
  };
  return opened;
}

type Run = (context: JobContext, key: JobId, remainingMs: () => number) => Promise<void>;

/** `messages` parses a message into the keys of the jobs that it names. Most messages name one job. */
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

/** A run that lost its lease has processed its message, because another run has the job or has ended the job. */
async function unlessLost(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof LeaseLost)) throw error;
  }
}
