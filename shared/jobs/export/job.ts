/** The kind of jobs that writes an export into a file. */
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import type { FileHeaders } from "#shared/aws/s3.ts";
import type { JobContext } from "#shared/context.ts";
import { equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { FileGone } from "#shared/errors.ts";
import { GzipPart, gzipBegin } from "#shared/jobs/export/gzip-parts.ts";
import { type Parts, StoredExport } from "#shared/jobs/export/stored.ts";
import { currentCaller, type JobKind, type RunningJob } from "#shared/jobs/job.ts";
import { exportKeys } from "#shared/jobs/s3-keys.ts";
import { errorFields, log } from "#shared/log.ts";
import {
  decodeOrder,
  encodeOrder,
  exportPieces,
  type Selection,
  selectProspects,
} from "#shared/prospects/csv/export.ts";
import { ProspectFilter } from "#shared/prospects/filter.ts";
import { freshDictionary } from "#shared/reference/dictionary.ts";

/** A part is uploaded when it has this many bytes. S3 requires at least 5 MB for each part except the last one. */
const PART_BYTES = 5_300_000;

const headers: FileHeaders = {
  contentType: "text/csv; charset=utf-8",
  contentEncoding: "gzip",
  contentDisposition: 'attachment; filename="prospects.csv"',
};

export const exportJob = (partBytes = PART_BYTES): JobKind<StoredExport> => ({
  name: "export",
  schema: StoredExport,
  keyOf: ({ companyId, id }) => keys.export(companyId, id),
  begin: async (_, { state }) => (state === "running" ? { set: {}, when: equals("state", state) } : undefined),
  work: async (context, job) => {
    const caller = await callerOf(context, job.stored);
    if (caller === undefined) {
      await fail(context, job, "The user who began the export may no longer see all of these prospects.");
      return true;
    }
    try {
      const selection = await select(context, job, caller);
      const parts = job.stored.parts ?? (await beginFile(context, job));
      return await writeParts(context, job, { caller, selection, parts, partBytes });
    } catch (error) {
      if (!(error instanceof FileGone)) throw error;
      return recover(context, job, error);
    }
  },
  giveUp: (context, job) => fail(context, job, "The export could not be completed."),
});

/** Returns the user who began the export, with current rights, or undefined if the user may no longer see all exported prospects. */
async function callerOf(context: JobContext, stored: StoredExport): Promise<Caller | undefined> {
  const { assignee } = stored;
  const caller = await currentCaller(context, stored);
  const visible = caller && visibleAssignee(caller);
  if (caller === undefined || (visible !== undefined && visible !== assignee)) return undefined;
  // If `assignee` is set, the user could see only prospects assigned to them when the export was requested. The file contains only these,
  // even if the user may see more now.
  return assignee === null ? caller : { ...caller, role: "sales", permissions: [] };
}

type ExportJob = RunningJob<StoredExport>;

/** Selects the prospects and stores their ids, in the order of the file. Later invocations only read the ids. */
async function select(context: JobContext, job: ExportJob, caller: Caller): Promise<Selection> {
  const { companyId, total, filter } = job.stored;
  const key = exportKeys.order(job.stored);
  if (total !== null) {
    const [dictionary, bytes] = await Promise.all([freshDictionary(context, companyId), context.objects.get(key)]);
    return { dictionary, order: decodeOrder(bytes) };
  }
  const selection = await selectProspects(context, caller, ProspectFilter.parse(filter));
  await context.objects.put(key, encodeOrder(selection.order), "application/octet-stream");
  await job.save({ total: selection.order.ids.length });
  return selection;
}

async function beginFile({ objects }: JobContext, job: ExportJob): Promise<Parts> {
  const upload = await objects.beginParts(exportKeys.file(job.stored), headers);
  const parts = { upload, tags: [], ...gzipBegin, fileBytes: 0 };
  await job.save({ processed: 0, parts });
  return parts;
}

interface Writing {
  readonly caller: Caller;
  readonly selection: Selection;
  readonly parts: Parts;
  readonly partBytes: number;
}

/** Returns false if the invocation has too little time for the remaining prospects. */
async function writeParts(
  context: JobContext,
  job: ExportJob,
  { caller, selection, parts: begun, partBytes }: Writing,
): Promise<boolean> {
  let parts = begun;
  let { processed } = job.stored;
  let part = new GzipPart(parts);
  for await (const { text, prospects } of exportPieces(context, caller, selection, job.stored, processed)) {
    await part.write(text);
    processed += prospects;
    if (part.bytes < partBytes) {
      await job.heartbeat({ read: Math.max(job.stored.read, processed) });
      continue;
    }
    parts = await putPart(context, job.stored, parts, part, false);
    await job.save({ processed, parts, runs: 0 });
    if (job.isLate()) return false;
    part = new GzipPart(parts);
  }
  parts = await putPart(context, job.stored, parts, part, true);
  await context.objects.completeParts(exportKeys.file(job.stored), parts.upload, parts.tags);
  await end(context, job, { state: "completed", processed, parts });
  return true;
}

async function putPart(
  { objects }: JobContext,
  stored: StoredExport,
  { upload, tags, fileBytes }: Parts,
  part: GzipPart,
  isLast: boolean,
): Promise<Parts> {
  const bytes = await part.finish(isLast);
  const tag = await objects.putPart(exportKeys.file(stored), upload, tags.length + 1, bytes);
  return { upload, tags: [...tags, tag], ...part.state, fileBytes: fileBytes + bytes.length };
}

/** Ends the job and then deletes the file of ids. If the deletion fails, the bucket's lifecycle rule deletes the file later. */
async function end({ objects }: JobContext, job: ExportJob, set: Partial<StoredExport>): Promise<void> {
  await job.end(set);
  await objects.remove(exportKeys.order(job.stored)).catch((error: unknown) => {
    log.warn("order of an export not removed", { id: job.stored.id, ...errorFields(error) });
  });
}

/** If the exported file exists, an interrupted invocation has completed it. Otherwise, another invocation begins the export again. */
async function recover(context: JobContext, job: ExportJob, error: FileGone): Promise<boolean> {
  const { id, total, parts } = job.stored;
  const file = await context.objects.info(exportKeys.file(job.stored));
  if (file !== undefined && parts !== null && total !== null) {
    await end(context, job, { state: "completed", processed: total, parts: { ...parts, fileBytes: file.bytes } });
    return true;
  }
  log.warn("export restarted", { id, ...errorFields(error) });
  if (parts !== null) await context.objects.abortParts(exportKeys.file(job.stored), parts.upload);
  await job.save({ parts: null, total: null, processed: 0, read: 0 });
  return false;
}

async function fail(context: JobContext, job: ExportJob, failure: string): Promise<void> {
  const { parts } = job.stored;
  if (parts !== null) await context.objects.abortParts(exportKeys.file(job.stored), parts.upload);
  await end(context, job, { state: "failed", failure });
}
