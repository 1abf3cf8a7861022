/** The messages of the queue of imports: S3 tells of an upload, a run that hands over or the sweeper that there is something to do. */
import * as z from "zod/mini";
import { type JobPlace, oneJob } from "#shared/aws/job-queue.ts";
import { fileKeys } from "#shared/jobs/import/s3-keys.ts";
import { log } from "#shared/log.ts";

const Uploaded = z.pipe(
  z.object({
    Records: z.array(
      z.object({ eventSource: z.literal("aws:s3"), s3: z.object({ object: z.object({ key: z.string() }) }) }),
    ),
  }),
  z.transform(({ Records }) => Records.flatMap(({ s3 }) => importOf(s3.object.key))),
);
/** Sent once, when the bucket is told of the queue. */
const Greeting = z.pipe(
  z.object({ Event: z.literal("s3:TestEvent") }),
  z.transform((): JobPlace[] => []),
);

export const ImportMessage = z.union([oneJob("import"), Uploaded, Greeting]);

function importOf(key: string): JobPlace[] {
  // A key comes as in a form: a blank is a plus sign.
  const found = fileKeys.uploadAt(decodeURIComponent(key.replaceAll("+", " ")));
  if (found === undefined) log.warn("an upload of nobody's");
  return found === undefined ? [] : [found];
}
