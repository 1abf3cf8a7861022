/**
 * Executes an export job for one Lambda invocation, which may continue an earlier one. The job's lease allows only one invocation at a
 * time.
 */
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import { StoredUser } from "#shared/auth/user-schema.ts";
import type { FileHeaders } from "#shared/aws/s3.ts";
import { type JobId, oneJob } from "#shared/aws/sqs.ts";
import type { JobContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { FileGone } from "#shared/errors.ts";
import { GzipPart, gzipBegin } from "#shared/jobs/export/gzip-parts.ts";
import { type Parts, StoredExport } from "#shared/jobs/export/stored.ts";
import { fruitlessRuns, JobLease, LeaseLost, MAX_FRUITLESS_RUNS } from "#shared/jobs/lease.ts";
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

/** The senders are the API request, an invocation that runs out of time, and the sweeper. */
export const ExportMessage = oneJob("export");

/** A part is uploaded when it has this many bytes. S3 requires at least 5 MB for each part except the last one. */
const PART_BYTES = 5_300_000;

const headers: FileHeaders = {
  contentType: "text/csv; charset=utf-8",
  contentEncoding: "gzip",
  contentDisposition: 'attachment; filename="prospects.csv"',
};

/** May be interrupted and called again, and two calls may overlap. Throws LeaseLost if another invocation has taken the job. */
export async function runExport(
  context: JobContext,
  { companyId, id }: JobId,
  remainingMs: () => number,
  partBytes = PART_BYTES,
): Promise<void> {
  const key = keys.export(companyId, id);
  const item = await context.table.get(key);
  if (item === undefined) return;
  const stored = StoredExport.parse(item);
  const lease = new JobLease(context, key, (row) => StoredExport.parse(row), stored, remainingMs);
  if (stored.state !== "running") return item.dueAt === undefined ? undefined : lease.end({});
  if (stored.runsUntil > context.clock.now()) return;
  await lease.save({ runs: stored.runs + 1 });
  if (stored.runs >= MAX_FRUITLESS_RUNS) return fail(context, lease, "The export could not be completed.");
  const caller = await callerOf(context, stored);
  if (caller === undefined) {
    return fail(context, lease, "The user who began the export may no longer see all of these prospects.");
  }
  try {
    await work(context, lease, caller, partBytes);
  } catch (error) {
    if (error instanceof LeaseLost) throw error;
    // Release the lease, so that a retry can start before the lease would expire.
    await lease.release({ runs: fruitlessRuns(lease.stored.runs, error) }).catch(() => undefined);
    throw error;
  }
}

/** Returns the user who began the export, with current rights, or undefined if the user may no longer see all prospects of it. */
async function callerOf({ table }: JobContext, stored: StoredExport): Promise<Caller | undefined> {
  const { companyId, createdBy, assignee } = stored;
  const user = StoredUser.parse(await table.get(keys.user(companyId, createdBy)));
  const caller = { companyId, userId: user.id, role: user.role, permissions: user.permissions };
  const visible = visibleAssignee(caller) ?? null;
  if (!user.isActive || (visible !== null && visible !== assignee)) return undefined;
  // If `assignee` is set, the user could see only assigned prospects at the request. The file stays so limited.
  return assignee === null ? caller : { ...caller, role: "sales", permissions: [] };
}

type Lease = JobLease<StoredExport>;

async function work(context: JobContext, lease: Lease, caller: Caller, partBytes: number): Promise<void> {
  try {
    const selection = await select(context, lease, caller);
    const parts = lease.stored.parts ?? (await beginFile(context, lease));
    if (await writeParts(context, lease, caller, selection, { ...parts, partBytes })) return;
  } catch (error) {
    if (!(error instanceof FileGone)) throw error;
    return recover(context, lease, error);
  }
  await context.jobs.send({ kind: "export", companyId: caller.companyId, id: lease.stored.id });
}

/** Stores the ids of the prospects in the order of the file, for later invocations. */
async function select(context: JobContext, lease: Lease, caller: Caller): Promise<Selection> {
  const { companyId, id, total, filter } = lease.stored;
  const key = exportKeys.order(companyId, id);
  if (total !== null) {
    const [dictionary, bytes] = await Promise.all([freshDictionary(context, companyId), context.objects.get(key)]);
    return { dictionary, order: decodeOrder(bytes) };
  }
  const selection = await selectProspects(context, caller, ProspectFilter.parse(filter));
  await context.objects.put(key, encodeOrder(selection.order), "application/octet-stream");
  await lease.save({ total: selection.order.ids.length });
  return selection;
}

async function beginFile({ objects }: JobContext, lease: Lease): Promise<Parts> {
  const { companyId, id } = lease.stored;
  const upload = await objects.beginParts(exportKeys.file(companyId, id), headers);
  const parts = { upload, tags: [], ...gzipBegin, fileBytes: 0 };
  await lease.save({ processed: 0, parts });
  return parts;
}

/** Returns false if the invocation has too little time for the rest. */
async function writeParts(
  context: JobContext,
  lease: Lease,
  caller: Caller,
  selection: Selection,
  { partBytes, ...begun }: Parts & { readonly partBytes: number },
): Promise<boolean> {
  let parts: Parts = begun;
  let { processed } = lease.stored;
  let part = new GzipPart(parts);
  for await (const { text, prospects } of exportPieces(context, caller, selection, lease.stored, processed)) {
    await part.write(text);
    processed += prospects;
    if (part.bytes < partBytes) {
      await lease.heartbeat({ read: Math.max(lease.stored.read ?? 0, processed) });
      continue;
    }
    parts = await putPart(context, lease.stored, parts, part, false);
    await lease.save({ processed, parts, runs: 0 });
    if (lease.isLate()) {
      await lease.release({});
      return false;
    }
    part = new GzipPart(parts);
  }
  parts = await putPart(context, lease.stored, parts, part, true);
  const { companyId, id } = lease.stored;
  await context.objects.completeParts(exportKeys.file(companyId, id), parts.upload, parts.tags);
  await end(context, lease, { state: "completed", processed, parts });
  return true;
}

async function putPart(
  { objects }: JobContext,
  { companyId, id }: StoredExport,
  { upload, tags, fileBytes }: Parts,
  part: GzipPart,
  isLast: boolean,
): Promise<Parts> {
  const bytes = await part.finish(isLast);
  const tag = await objects.putPart(exportKeys.file(companyId, id), upload, tags.length + 1, bytes);
  return { upload, tags: [...tags, tag], ...part.state, fileBytes: fileBytes + bytes.length };
}

/** Ends the job and then deletes the ids. If the deletion fails, the bucket's lifecycle rule deletes the file later. */
async function end({ objects }: JobContext, lease: Lease, set: Partial<StoredExport>): Promise<void> {
  const { companyId, id } = lease.stored;
  await lease.end(set);
  await objects.remove(exportKeys.order(companyId, id)).catch((error: unknown) => {
    log.warn("order of an export not removed", { id, ...errorFields(error) });
  });
}

/**
 * Handles a missing upload or missing ids. If the exported file exists, an interrupted invocation completed it, and the job is marked.
 * Otherwise the export begins again.
 */
async function recover(context: JobContext, lease: Lease, error: FileGone): Promise<void> {
  const { companyId, id, total, parts } = lease.stored;
  const file = await context.objects.info(exportKeys.file(companyId, id));
  if (file !== undefined && parts !== null) {
    const set = { processed: total ?? 0, parts: { ...parts, fileBytes: file.bytes } };
    return end(context, lease, { state: "completed", ...set });
  }
  log.warn("export restarted", { id, ...errorFields(error) });
  if (parts !== null) await context.objects.abortParts(exportKeys.file(companyId, id), parts.upload);
  await lease.release({ parts: null, total: null, processed: 0, read: 0 });
  await context.jobs.send({ kind: "export", companyId, id });
}

async function fail(context: JobContext, lease: Lease, failure: string): Promise<void> {
  const { companyId, id, parts } = lease.stored;
  if (parts !== null) await context.objects.abortParts(exportKeys.file(companyId, id), parts.upload);
  await end(context, lease, { state: "failed", failure });
}
