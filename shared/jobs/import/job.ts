/**
 * Executes an import of an uploaded file for one Lambda invocation. If the import fails, it deletes the rows. The job's lease allows only
 * one invocation at a time.
 */
import * as z from "zod/mini";
import { type Caller, may } from "#shared/auth/caller.ts";
import { StoredUser } from "#shared/auth/user-schema.ts";
import { type JobId, oneJob } from "#shared/aws/sqs.ts";
import { importedWrite } from "#shared/company-index/activity/log.ts";
import { ImportCollector } from "#shared/company-index/facts.ts";
import { addPart, completePart, storeSegments } from "#shared/company-index/write/publish.ts";
import type { JobContext } from "#shared/context.ts";
import type { Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { FileGone } from "#shared/errors.ts";
import { checkFile, fileEncoding, fileMatching } from "#shared/jobs/import/check.ts";
import { columnsOf, namesOf } from "#shared/jobs/import/columns.ts";
import { ImportLease } from "#shared/jobs/import/lease.ts";
import { abandon, clear, completion, pieceNames } from "#shared/jobs/import/lifecycle.ts";
import { jobNames } from "#shared/jobs/import/names.ts";
import { beginningOf, StoredImport, type StoredJob } from "#shared/jobs/import/stored.ts";
import { updateRows } from "#shared/jobs/import/update.ts";
import { planRows, rowsAlongCurve, writeRows } from "#shared/jobs/import/write.ts";
import { fruitlessRuns, LeaseLost, MAX_FRUITLESS_RUNS } from "#shared/jobs/lease.ts";
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

/** The senders are S3 after an upload, an invocation that runs out of time, and the sweeper. */
export const ImportMessage = z.union([oneJob("import"), Uploaded, TestEvent]);

function jobOfUpload(key: string): JobId[] {
  // S3 encodes the keys in its messages like form values, in which a plus sign means a space.
  const found = importKeys.uploadAt(decodeURIComponent(key.replaceAll("+", " ")));
  if (found === undefined) log.warn("upload without an import");
  return found === undefined ? [] : [found];
}

/** May be interrupted and called again, and two calls may overlap. Throws LeaseLost if another invocation has taken the job. */
export async function runImport(
  context: JobContext,
  { companyId, id }: JobId,
  remainingMs: () => number,
): Promise<void> {
  const item = await context.table.get(keys.import(companyId, id));
  if (item === undefined) return;
  const stored = StoredImport.parse(item);
  const lease = new ImportLease(context, stored, remainingMs);
  if (stored.state === "completed") return item.dueAt === undefined ? undefined : lease.end({});
  if (stored.runsUntil > context.clock.now()) return;
  if (stored.state === "failed" || stored.state === "cancelled") return clearJob(context, lease);
  if (stored.job === undefined) return void (await abandon(context, stored));
  if (stored.state === "awaiting_upload" && !(await takeUpload(context, lease, stored.job))) return;
  if (lease.stored.state === "failed") return clearJob(context, lease);
  await work(context, lease);
}

/** Returns false if the file is missing but may still be uploaded. */
async function takeUpload({ objects, clock }: JobContext, lease: ImportLease, job: StoredJob): Promise<boolean> {
  const { companyId, id } = lease.stored;
  const file = await objects.info(importKeys.uploaded(companyId, id));
  if (file === undefined) {
    if (clock.now() < job.uploadUntil + limits.uploadMs) return false;
    await fail(lease, "The file was not uploaded in time.");
  } else if (file.bytes > limits.jobBytes) {
    await fail(lease, `The file may hold at most ${limits.jobBytes} bytes.`);
  } else {
    await lease.save({ state: "running", job: { ...job, etag: file.etag } });
  }
  return true;
}

const fail = (lease: ImportLease, failure: string): Promise<void> => lease.release({ state: "failed", failure });

async function work(context: JobContext, lease: ImportLease): Promise<void> {
  const failAndClear = async (failure: string): Promise<void> => {
    await fail(lease, failure);
    await clearJob(context, lease);
  };
  if (lease.job.runs >= MAX_FRUITLESS_RUNS) return failAndClear("The import could not be completed.");
  const caller = await currentCaller(context, lease.stored);
  if (!may(caller, "canManageProspects")) {
    return failAndClear("The user who began the import may no longer import.");
  }
  await lease.save({ job: { ...lease.job, runs: lease.job.runs + 1 } });
  try {
    await runSteps(context, lease, caller).catch((error: unknown) => {
      if (!(error instanceof UnknownHeader) || lease.stored.dryRun !== true) throw error;
      return showColumns(context, lease);
    });
  } catch (error) {
    if (error instanceof LeaseLost) throw error;
    if (!(error instanceof BadFile || error instanceof FileGone)) {
      // Release the lease, so that a retry can start before the lease would expire.
      await lease.release({ job: { ...lease.job, runs: fruitlessRuns(lease.job.runs, error) } }).catch(() => undefined);
      throw error;
    }
    log.warn("import refused", { id: lease.stored.id, ...errorFields(error) });
    await failAndClear(error instanceof BadFile ? error.message : "The uploaded file was removed or replaced.");
  }
}

/** Returns the user with current rights, which may have changed: the upload link is valid for an hour. */
async function currentCaller({ table }: JobContext, { companyId, createdBy }: StoredImport): Promise<Caller> {
  const { isActive, role, permissions } = StoredUser.parse(await table.get(keys.user(companyId, createdBy)));
  const none = { role: "sales" as const, permissions: [] };
  return { companyId, userId: createdBy, ...(isActive ? { role, permissions } : none) };
}

/** If the time is too short, a message for a new invocation is sent instead. */
async function runSteps(context: JobContext, lease: ImportLease, caller: Caller): Promise<void> {
  const encoding = await fileEncoding(context, lease);
  const matching = await fileMatching(context, lease, caller, encoding);
  const names = await jobNames(context, lease.stored);
  const file = { encoding, matching, mapping: lease.mapping, dictionary: names.dictionary };
  if (lease.job.progress.step === "check" && !(await checkFile(context, lease, file))) return handOver(context, lease);
  const isDryRun = lease.stored.dryRun === true;
  if (lease.job.progress.step === "update" && !isDryRun) {
    if (!(await updateRows(context, lease, caller, names, file))) return handOver(context, lease);
  }
  if (isDryRun || lease.job.total?.prospect === 0) {
    await context.table.transact(completed(context, lease, lease.stored.imported));
    return removeWorkFiles(context, lease.stored);
  }
  if (lease.job.progress.step === "write") {
    const plan = await planRows(context, lease, names);
    if (!(await writeRows(context, lease, plan, file))) return handOver(context, lease);
    const progress = { ...lease.job.progress, step: "publish" as const };
    await lease.save({ job: { ...lease.job, progress } });
  }
  if (lease.isLate(PUBLISH_MS)) {
    await lease.release({});
    return handOver(context, lease);
  }
  await publishRows(context, lease);
  await removeWorkFiles(context, lease.stored);
}

/** Completes a dry run of a file without a known header. */
async function showColumns(context: JobContext, lease: ImportLease): Promise<void> {
  const { companyId, id } = lease.stored;
  const bytes = context.objects.read(importKeys.uploaded(companyId, id), lease.job.etag ?? "");
  const columns = await columnsOf(bytes, await fileEncoding(context, lease));
  await lease.save({ columns, ignoredColumns: namesOf(columns) });
  await context.table.transact(completed(context, lease, 0));
  await removeWorkFiles(context, lease.stored);
}

async function handOver({ jobs }: JobContext, { stored: { companyId, id } }: ImportLease): Promise<void> {
  await jobs.send({ kind: "import", companyId, id });
}

/** Upper bound for the last step with a million rows. An invocation with less time leaves it to a new one. */
const PUBLISH_MS = 300_000;

/** Merges the sorted chunks of index rows, stores them in the company index, and makes all prospects visible with one transaction. */
async function publishRows(context: JobContext, lease: ImportLease): Promise<void> {
  const { companyId, id } = lease.stored;
  const { total, first, progress } = lease.job;
  if (total === null || first === null) throw new Error("rows cannot be published before they are counted");
  const options = { newId: pieceNames(id), between: () => lease.heartbeat({}) };
  const rows = await rowsAlongCurve(context.objects, { companyId, id }, progress.stretches);
  const range = { from: first.prospect, to: first.prospect + total.prospect - 1 };
  const collector = new ImportCollector(lease.stored.createdBy, range.from, range.to);
  const passing = collector.passing(rows);
  const segments = await storeSegments(context.table, companyId, passing, options);
  const noOverrides = { prospects: [], notes: [], looseNotes: [] };
  const part = await completePart(context.table, companyId, segments, noOverrides, options);
  // Throws if another invocation has taken the job. That invocation stores the same index rows under the same names.
  await lease.heartbeat({});
  const others = (version: number) => [importedWrite(companyId, version, collector.facts)];
  const commit = (moves: readonly Write[]) =>
    context.table.transact([...moves, ...completed(context, lease, total.prospect)]);
  await addPart(context, companyId, part, { range, others }, commit);
}

function completed({ clock }: JobContext, { stored, job }: ImportLease, imported: number): Write[] {
  const progress = { ...beginningOf("publish"), stretches: job.progress.stretches };
  return completion(stored, { imported, job: { ...job, progress } }, clock.now());
}

/**
 * Deletes the job's files. The bucket's lifecycle rule deletes the rest after 30 days by default: checkpoints of the error report, and
 * files whose deletion fails here.
 */
async function removeWorkFiles({ objects }: JobContext, { companyId, id, job }: StoredImport): Promise<void> {
  const chunks = Array.from({ length: job?.progress.stretches ?? 0 }, (_, n) => importKeys.chunk(companyId, id, n));
  try {
    for (const key of [...chunks, importKeys.names(companyId, id), importKeys.matches(companyId, id)])
      await objects.remove(key);
  } catch (error) {
    log.warn("files of an import not removed", { id, ...errorFields(error) });
  }
}

/**
 * Deletes the records and files of a failed or cancelled import, and ends the job. Changes of existing prospects and created tags remain.
 */
async function clearJob(context: JobContext, lease: ImportLease): Promise<void> {
  const { companyId, id, job } = lease.stored;
  await clear(context.table, lease.stored);
  if (job !== undefined) {
    const { upload } = job.progress.report ?? { upload: null };
    if (upload !== null) await context.objects.abortParts(importKeys.report(companyId, id), upload);
    await context.objects.remove(importKeys.uploaded(companyId, id));
    await removeWorkFiles(context, lease.stored);
  }
  await lease.end({});
}
