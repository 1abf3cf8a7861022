/** The messages of the job queue: S3 tells of an upload, a run that hands over or the sweeper that there is something to do. */
import type { Context, SQSBatchResponse, SQSEvent } from "aws-lambda";
import * as z from "zod/mini";
import { runExport } from "#shared/exports/job.ts";
import { runImport } from "#shared/imports/job.ts";
import { fileKeys } from "#shared/imports/places.ts";
import { JobLost } from "#shared/jobs/held.ts";
import { JobMessage } from "#shared/jobs/queue.ts";
import type { JobWorld } from "#shared/jobs/world.ts";
import { log } from "#shared/log.ts";
import { queueConsumer } from "#shared/queue-consumer.ts";

const Uploaded = z.object({
  Records: z.array(
    z.object({ eventSource: z.literal("aws:s3"), s3: z.object({ object: z.object({ key: z.string() }) }) }),
  ),
});
/** Sent once, when the bucket is told of the queue. */
const Greeting = z.object({ Event: z.literal("s3:TestEvent") });

const Message = z.union([JobMessage, Uploaded, Greeting]);

export const jobConsumer = (
  world: () => JobWorld,
): ((event: SQSEvent, context: Context) => Promise<SQSBatchResponse>) =>
  queueConsumer(
    Message,
    async ({ message, remainingMs }) => {
      for (const job of jobsIn(message)) await run(world(), job, remainingMs);
    },
    (receiptHandle, seconds) => world().jobs.returnIn(receiptHandle, seconds),
  );

function jobsIn(message: z.infer<typeof Message>): JobMessage[] {
  if ("kind" in message) return [message];
  if (!("Records" in message)) return [];
  return message.Records.flatMap(({ s3 }) => {
    // A key comes as in a form: a blank is a plus sign.
    const found = fileKeys.uploadAt(decodeURIComponent(s3.object.key.replaceAll("+", " ")));
    if (found === undefined) log.warn("an upload of nobody's");
    return found === undefined ? [] : [{ kind: "import" as const, ...found }];
  });
}

/** A job that somebody else has, or has ended, needs nobody. */
async function run(world: JobWorld, { kind, companyId, id }: JobMessage, remainingMs: () => number): Promise<void> {
  try {
    await (kind === "import" ? runImport : runExport)(world, { companyId, id }, remainingMs);
  } catch (error) {
    if (!(error instanceof JobLost)) throw error;
  }
}
