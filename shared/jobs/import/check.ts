/** Checks an uploaded file before any row is written. */

import { gunzipSync, gzipSync } from "node:zlib";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { JobContext } from "#shared/context.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import { FileGone } from "#shared/errors.ts";
import { ErrorReport, ReportLost } from "#shared/jobs/import/error-report.ts";
import type { ImportLease } from "#shared/jobs/import/lease.ts";
import { findMatches, Matches } from "#shared/jobs/import/match.ts";
import {
  batchesOf,
  type FileReading,
  keysOfFile,
  type Matching,
  NewTags,
  noFindings,
  plus,
  readRows,
} from "#shared/jobs/import/read-file.ts";
import { beginningOf, RowFault } from "#shared/jobs/import/stored.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";
import { type Encoding, encodingOf } from "#shared/prospects/csv/encoding.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";

/**
 * Returns false if the time is too short for the rest, or if the error report was lost, so that the next invocation checks the whole file
 * again. Throws BadFile if the file cannot be imported.
 */
export async function checkFile(context: JobContext, lease: ImportLease, file: FileReading): Promise<boolean> {
  try {
    return await checkRows(context, lease, file);
  } catch (error) {
    if (!(error instanceof ReportLost)) throw error;
    log.warn("check of an import restarted", { id: lease.stored.id, ...errorFields(error) });
    const none = { processed: 0, skipped: 0, errors: packed([]) };
    await lease.release({ ...none, job: { ...lease.job, progress: beginningOf("check") } });
    return false;
  }
}

async function checkRows({ objects }: JobContext, lease: ImportLease, file: FileReading): Promise<boolean> {
  const { companyId, id } = lease.stored;
  const { job } = lease;
  const tags = new NewTags(file.dictionary, job.progress.newTags);
  const report = await ErrorReport.open(objects, { companyId, id }, job.progress.report);
  const shown = unpacked(z.array(RowFault), lease.stored.errors);
  // The counts continue from the checkpoint. Clients may have seen a higher progress, which each renewal of the lease stores.
  let { done, row, updated, skipped, warnings = 0 } = job.progress;
  let processed = done.prospect + updated + skipped;
  const bytes = objects.read(importKeys.uploaded(companyId, id), job.etag ?? "");
  const findings = noFindings();
  const reading = { ...file, tags, after: row, findings };
  const counts = () => ({ processed, skipped, errors: packed(shown) });
  for await (const batch of batchesOf(readRows(bytes, reading))) {
    done = plus(done, batch);
    row = batch.row;
    processed += batch.drafts.length + batch.changes.length + batch.faults.length;
    updated += batch.changes.length;
    skipped += batch.faults.length;
    warnings += batch.warnings;
    if (processed > limits.jobRows) throw new BadFile(`The file may hold at most ${limits.jobRows} rows.`);
    shown.push(...batch.faults.slice(0, limits.jobErrors - shown.length));
    await report.add(batch.faults);
    if (lease.isLate()) {
      const paused = await report.checkpoint(row);
      const progress = { ...job.progress, done, row, updated, skipped, warnings, newTags: tags.values, report: paused };
      await lease.release({ ...counts(), job: { ...job, progress } });
      return false;
    }
    await lease.heartbeat({ processed, skipped });
  }
  const hasReport = skipped > shown.length;
  if (hasReport) await report.finish();
  const progress = { ...beginningOf(updated > 0 ? "update" : "write"), newTags: tags.values };
  const checked = { ...job, total: done, hasReport, runs: 0, progress };
  const ignoredColumns = [...findings.ignoredColumns];
  await lease.save({ ...counts(), imported: done.prospect, updated, warnings, ignoredColumns, job: checked });
  return true;
}

/** The lease expires after two minutes. */
const LEASE_RENEWAL_MS = 60_000;

/** Renews the lease between the chunks: over a slow connection, reading a large file takes longer than the lease lasts. */
async function* bytesOf({ objects }: JobContext, lease: ImportLease): AsyncGenerator<Uint8Array> {
  const { companyId, id } = lease.stored;
  for await (const chunk of objects.read(importKeys.uploaded(companyId, id), lease.job.etag ?? "")) {
    await lease.heartbeat({}, LEASE_RENEWAL_MS);
    yield chunk;
  }
}

/** Throws BadFile if the file is a workbook of a spreadsheet program (such as xlsx) instead of text. */
export async function fileEncoding(context: JobContext, lease: ImportLease): Promise<Encoding> {
  const { encoding: known } = lease.stored;
  if (known !== undefined) return known;
  const encoding = await encodingOf(bytesOf(context, lease));
  await lease.save({ encoding });
  return encoding;
}

/** Returns undefined if the import only creates prospects. Throws BadFile if the file is not CSV, or lacks the matching column. */
export async function fileMatching(
  context: JobContext,
  lease: ImportLease,
  caller: Caller,
  encoding: Encoding,
): Promise<Matching | undefined> {
  const { matching } = lease.job;
  if (matching === undefined) return undefined;
  const key = importKeys.matches(lease.stored.companyId, lease.stored.id);
  try {
    return { ...matching, matches: Matches.fromBytes(gunzipSync(await context.objects.get(key))) };
  } catch (error) {
    if (!(error instanceof FileGone)) throw error;
  }
  const reading = { encoding, mapping: lease.mapping, by: matching.by, rowLimit: limits.jobRows };
  const fileKeys = await keysOfFile(bytesOf(context, lease), reading);
  const matches = await findMatches(context.table, caller, fileKeys, {
    onProgress: () => lease.heartbeat({}, LEASE_RENEWAL_MS),
  });
  await context.objects.put(key, gzipSync(matches.bytes), "application/gzip");
  return { ...matching, matches };
}
