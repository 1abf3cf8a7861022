/** Handles the messages of the SQS queues of jobs. */
import type { Context, SQSBatchResponse, SQSEvent } from "aws-lambda";
import type * as z from "zod/mini";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { openObjects } from "#shared/aws/s3.ts";
import { type JobId, type JobMessage, openJobQueues } from "#shared/aws/sqs.ts";
import { setting } from "#shared/config.ts";
import { contextOn, type JobContext } from "#shared/context.ts";
import { openTable } from "#shared/db/table.ts";
import { oncePerInstance } from "#shared/instance.ts";
import { LeaseLost } from "#shared/jobs/lease.ts";
import { eachAlone, queueConsumer } from "#shared/queue-consumer.ts";

/** Attempts for one call to DynamoDB. They take at most 15 seconds, and no client waits for a job. */
const ATTEMPTS = 5;

/** Opens the context at the first message, so that importing this module creates no AWS client. */
const jobContext = /* @__PURE__ */ oncePerInstance(
  (): JobContext => ({
    ...contextOn(openTable(setting("TABLE_NAME"), dynamoClient({ attempts: ATTEMPTS }))),
    objects: openObjects(),
    jobs: openJobQueues(),
  }),
);

type Run = (context: JobContext, key: JobId, remainingMs: () => number) => Promise<void>;

/** `messages` parses a queue message into the keys of its jobs. */
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

/** LeaseLost means that another invocation is working on the job or has ended it, so a retry would do nothing. */
async function unlessLost(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof LeaseLost)) throw error;
  }
}
