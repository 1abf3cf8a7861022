/** The kind of jobs that imports an uploaded file. If the import fails or is cancelled, the job deletes its records. */
import * as z from "zod/mini";
import { type Caller, may } from "#shared/auth/caller.ts";
import { type JobId, oneJob } from "#shared/aws/sqs.ts";
import type { JobContext } from "#shared/context.ts";
import { equals, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { FileGone } from "#shared/errors.ts";
import { checkFile, openFile, showColumns, unlessReportLost } from "#shared/jobs/import/check.ts";
import { clear, completion } from "#shared/jobs/import/lifecycle.ts";
import { StoredImport } from "#shared/jobs/import/stored.ts";
import { importRows } from "#shared/jobs/import/write.ts";
import { currentCaller, type JobKind, type RunningJob } from "#shared/jobs/job.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";
import { UnknownHeader } from "#shared/prospects/csv/header.ts";

/** The message that S3 sends to the queue after an upload. */
const Uploaded = z.pipe(
  z.object({
    Records: z.array(
      z.object({ eventSource: z.literal("aws:s3"), s3: z.object({ object: z.object({ key: z.string() }) }) }),
    ),
  }),
  z.transform(({ Records }) => Records.flatMap(({ s3 }) => jobOfUpload(s3.object.key))),
);

/** S3 sends this message to test a new notification. It names no job. */
const TestEvent = z.pipe(
  z.object({ Event: z.literal("s3:TestEvent") }),
  z.transform((): JobId[] => []),
);

/** The messages of the import queue. They come from S3 after an upload, from invocations that run out of time, and from the sweeper. */
export const ImportMessage = z.union([oneJob("import"), Uploaded, TestEvent]);

function jobOfUpload(key: string): JobId[] {
  // S3 encodes the keys in its messages like form values, in which a plus sign means a space.
  const found = importKeys.uploadAt(decodeURIComponent(key.replaceAll("+", " ")));
  if (found === undefined) log.warn("upload without an import");
  return found === undefined ? [] : [found];
}

type ImportJob = RunningJob<StoredImport>;

export const importJob: JobKind<StoredImport> = {
  name: "import",
  schema: StoredImport,
  keyOf: ({ companyId, id }) => keys.import(companyId, id),
  begin: async (context, stored) => {
    const set = await beginningFrom(context, stored);
    return set && { set, when: equals("state", stored.state) };
  },
  work: async (context, job) => {
    const end = job.stored.state === "running" ? await run(context, job) : "failed";
    if (end === "failed") await clearJob(context, job);
    return end !== "late";
  },
  giveUp: async (context, job) => {
    if (job.stored.state === "running") await fail(job, "The import could not be completed.");
    await clearJob(context, job);
  },
};

/** Returns undefined if the job needs no work now. A failed or cancelled import needs work until its records are deleted. */
async function beginningFrom(
  { objects, clock }: JobContext,
  stored: StoredImport,
): Promise<Partial<StoredImport> | undefined> {
  const { state, upload } = stored;
  if (state === "completed") return undefined;
  if (state !== "awaiting_upload") return state === "running" && upload === undefined ? { state: "failed" } : {};
  const file = await objects.info(importKeys.uploaded(stored));
  if (file === undefined) {
    // Until `uploadMs` after the upload link expires, the client may still upload the file, so the job waits.
    if (upload === undefined || clock.now() < upload.untilMs + limits.uploadMs) return undefined;
    return { state: "failed", failure: "The file was not uploaded in time." };
  }
  if (file.bytes <= limits.jobBytes) return { state: "running", etag: file.etag };
  return { state: "failed", failure: `The file may hold at most ${limits.jobBytes} bytes.` };
}

async function fail(job: ImportJob, failure: string): Promise<"failed"> {
  await job.save({ state: "failed", failure });
  return "failed";
}

async function run(context: JobContext, job: ImportJob): Promise<"done" | "late" | "failed"> {
  const caller = await currentCaller(context, job.stored);
  // The user's rights may have changed since the request, because the upload link is valid for an hour.
  if (caller === undefined || !may(caller, "canManageProspects"))
    return fail(job, "The user who began the import may no longer import.");
  try {
    return (await runSteps(context, job, caller)) ? "done" : "late";
  } catch (error) {
    if (!(error instanceof BadFile || error instanceof FileGone)) throw error;
    log.warn("import refused", { id: job.stored.id, ...errorFields(error) });
    return fail(job, error instanceof BadFile ? error.message : "The uploaded file was removed or replaced.");
  }
}

/** Returns false if the time is too short for the remaining steps. */
async function runSteps(context: JobContext, job: ImportJob, caller: Caller): Promise<boolean> {
  const commit = (moves: readonly Write[]) =>
    context.table.transact([...moves, ...completion(job, context.clock.now())]);
  try {
    const file = await openFile(context, job, caller);
    if (job.stored.progress.step === "check") {
      const isChecked = await unlessReportLost(job, () => checkFile(context, job, file));
      if (!isChecked || job.isLate()) return false;
    }
    if (job.stored.dryRun) await commit([]);
    else if (!(await importRows(context, job, caller, file, commit))) return false;
  } catch (error) {
    if (!(error instanceof UnknownHeader && job.stored.dryRun)) throw error;
    await showColumns(context, job);
    await commit([]);
  }
  await removeWorkFiles(context, job.stored);
  return true;
}

/** A lifecycle rule of the bucket deletes the checkpoints of the error report, and files whose deletion fails here. */
async function removeWorkFiles({ objects }: JobContext, stored: StoredImport): Promise<void> {
  const chunks = Array.from({ length: stored.progress.chunks }, (_, n) => importKeys.chunk(stored, n));
  try {
    for (const key of [...chunks, importKeys.names(stored), importKeys.matches(stored)]) await objects.remove(key);
  } catch (error) {
    log.warn("files of an import not removed", { id: stored.id, ...errorFields(error) });
  }
}

/** Ends a failed or cancelled import. Changes of existing prospects and created tags remain. */
async function clearJob(context: JobContext, job: ImportJob): Promise<void> {
  const { upload, progress } = job.stored;
  await clear(context.table, job.stored);
  if (upload !== undefined) {
    const parts = progress.report?.upload ?? null;
    if (parts !== null) await context.objects.abortParts(importKeys.report(job.stored), parts);
    await context.objects.remove(importKeys.uploaded(job.stored));
    await removeWorkFiles(context, job.stored);
  }
  await job.end({});
}
