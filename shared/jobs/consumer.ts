/** One queue of work on files: each job that a message names gets one run. */
import type { Context, SQSBatchResponse, SQSEvent } from "aws-lambda";
import type * as z from "zod/mini";
import { JobLost } from "#shared/jobs/held.ts";
import type { JobMessage, JobPlace } from "#shared/jobs/queue.ts";
import { type JobWorld, jobWorld } from "#shared/jobs/world.ts";
import { eachAlone, queueConsumer } from "#shared/queue-consumer.ts";

type Run = (world: JobWorld, place: JobPlace, remainingMs: () => number) => Promise<void>;

/** `messages` reads a message into the jobs that it names: mostly one. */
export const jobConsumer = (
  kind: JobMessage["kind"],
  messages: z.ZodMiniType<JobPlace[]>,
  run: Run,
): ((event: SQSEvent, context: Context) => Promise<SQSBatchResponse>) =>
  queueConsumer(
    messages,
    eachAlone(async ({ message, remainingMs }) => {
      for (const place of message) await unlessLost(run(jobWorld(), place, remainingMs));
    }),
    (receiptHandle, seconds) => jobWorld().jobs.returnIn(kind, receiptHandle, seconds),
  );

/** A job that somebody else has, or has ended, needs nobody. */
async function unlessLost(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof JobLost)) throw error;
  }
}
