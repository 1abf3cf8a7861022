/** Handles the messages of the SQS queues of jobs. */
import type { Context, SQSBatchResponse, SQSEvent } from "aws-lambda";
import type * as z from "zod/mini";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { openObjects } from "#shared/aws/s3.ts";
import { type JobId, oneJob, openJobQueues } from "#shared/aws/sqs.ts";
import { setting } from "#shared/config.ts";
import { contextOn, type JobContext } from "#shared/context.ts";
import { openTable } from "#shared/db/table.ts";
import { oncePerInstance } from "#shared/instance.ts";
import { type JobKind, type JobRow, runJob } from "#shared/jobs/job.ts";
import { eachAlone, queueConsumer } from "#shared/queue-consumer.ts";

/** Maximum number of attempts for one call to DynamoDB. They take at most 15 seconds, which is acceptable: no client waits for a job. */
const ATTEMPTS = 5;

const jobContext = /* @__PURE__ */ oncePerInstance(
  (): JobContext => ({
    ...contextOn(openTable(setting("TABLE_NAME"), dynamoClient({ attempts: ATTEMPTS }))),
    objects: openObjects(),
    jobs: openJobQueues(),
  }),
);

/** The messages come from API requests, from invocations that run out of time, from a bulk job that ends, and from the sweeper. */
export const jobConsumer = <Row extends JobRow>(
  kind: JobKind<Row>,
  messages: z.ZodMiniType<JobId[]> = oneJob(kind.name),
): ((event: SQSEvent, context: Context) => Promise<SQSBatchResponse>) =>
  queueConsumer(
    messages,
    eachAlone(async ({ message, remainingMs }) => {
      for (const id of message) await runJob(kind, jobContext(), id, remainingMs);
    }),
    (receiptHandle, seconds) => jobContext().jobs.returnIn(kind.name, receiptHandle, seconds),
  );
