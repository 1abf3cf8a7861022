/** One queue of work on files: each job that a message names gets one run. */
import type { Context, SQSBatchResponse, SQSEvent } from "aws-lambda";
import type * as z from "zod/mini";
import type { JobMessage, JobPlace } from "#shared/aws/job-queue.ts";
import type { JobContext } from "#shared/context.ts";
import { jobContext } from "#shared/jobs/context.ts";
import { JobLost } from "#shared/jobs/lease.ts";
import { eachAlone, queueConsumer } from "#shared/queue-consumer.ts";

type Run = (context: JobContext, place: JobPlace, remainingMs: () => number) => Promise<void>;

/** `messages` reads a message into the jobs that it names: mostly one. */
export const jobConsumer = (
  kind: JobMessage["kind"],
  messages: z.ZodMiniType<JobPlace[]>,
  run: Run,
): ((event: SQSEvent, context: Context) => Promise<SQSBatchResponse>) =>
  queueConsumer(
    messages,
    eachAlone(async ({ message, remainingMs }) => {
      for (const place of message) await unlessLost(run(jobContext(), place, remainingMs));
    }),
    (receiptHandle, seconds) => jobContext().jobs.returnIn(kind, receiptHandle, seconds),
  );

/** A job that somebody else has, or has ended, needs nobody. */
async function unlessLost(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof JobLost)) throw error;
  }
}
