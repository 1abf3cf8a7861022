/** Changes the existing prospects that the rows of an import match. */
import * as z from "zod/mini";
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext, JobContext } from "#shared/context.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import { CHANGES_AT_ONCE, changesAtOnce } from "#shared/jobs/changes-at-once.ts";
import { ErrorReport } from "#shared/jobs/import/error-report.ts";
import type { ImportLease } from "#shared/jobs/import/lease.ts";
import { addTags, type ImportNames } from "#shared/jobs/import/names.ts";
import { batchesOf, type ChangedRow, type FileReading, NewTags, readRows } from "#shared/jobs/import/read-file.ts";
import { beginningOf, RowFault } from "#shared/jobs/import/stored.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import * as limits from "#shared/limits.ts";
import { changeByRow, type ImportOfChanges } from "#shared/prospects/csv/change.ts";

/** Rows between two checkpoints. After a crash, these are handled again within some seconds. */
const CHECKPOINT_ROWS = 16_384;

/**
 * Changes existing prospects, and collects the errors of all rows again, because a prospect may have been deleted since the check. Returns
 * false if the time is too short. The next invocation begins at the last checkpoint, and changes no prospect a second time.
 */
export async function updateRows(
  context: JobContext,
  lease: ImportLease,
  caller: Caller,
  names: ImportNames,
  file: FileReading,
): Promise<boolean> {
  const { companyId, id } = lease.stored;
  const { job } = lease;
  if (file.matching === undefined) throw new Error("an import without matching updates nothing");
  const known = await addTags(context, { companyId, id }, names, job.progress.newTags);
  const ofImport = { importId: String(id), by: file.matching.by, ...known };
  const report = await ErrorReport.open(context.objects, { companyId, id }, job.progress.report);
  let { row, updated, skipped } = job.progress;
  let { warnings = 0 } = lease.stored;
  const shown = row === 0 ? [] : unpacked(z.array(RowFault), lease.stored.errors);
  const bytes = context.objects.read(importKeys.uploaded(companyId, id), job.etag ?? "");
  const reading = { ...file, tags: new NewTags(file.dictionary, job.progress.newTags), after: row };
  // After a crash, the progress that clients see must not decrease.
  const shownUpdates = (count: number): number => Math.max(lease.stored.written ?? 0, count);
  const checkpoint = async (): Promise<void> => {
    const progress = { ...job.progress, row, updated, skipped, report: await report.checkpoint(row) };
    const counts = { errors: packed(shown), written: shownUpdates(updated), warnings };
    await lease.save({ ...counts, job: { ...job, runs: 0, progress } });
  };
  let stored = row;
  for await (const batch of batchesOf(readRows(bytes, reading))) {
    const late = await changeProspects(context, caller, ofImport, batch.changes, {
      atOnce: changesAtOnce(),
      onProgress: (changed) => lease.heartbeat({ written: shownUpdates(updated + changed) }),
    });
    const faults = [...batch.faults, ...late.faults].sort((a, b) => a.row - b.row);
    shown.push(...faults.slice(0, limits.jobErrors - shown.length));
    await report.add(faults);
    updated += batch.changes.length - late.faults.length;
    warnings += late.warnings;
    skipped += faults.length;
    row = batch.row;
    if (row - stored < CHECKPOINT_ROWS && !lease.isLate()) continue;
    await checkpoint();
    stored = row;
    if (!lease.isLate()) continue;
    await lease.release({});
    return false;
  }
  const hasReport = skipped > shown.length;
  if (hasReport) await report.finish();
  const progress = { ...beginningOf("write"), updated, newTags: job.progress.newTags };
  await lease.save({
    updated,
    skipped,
    warnings,
    errors: packed(shown),
    job: { ...job, hasReport, runs: 0, progress },
  });
  return true;
}

/** Number of rows between two calls of `onProgress`. */
const ROWS_TOGETHER = 96;

interface Changing {
  readonly atOnce?: number;
  readonly onProgress?: (changed: number) => Promise<void>;
}

/**
 * Returns a fault for each row whose prospect can no longer be changed, and the number of values that were left out. When it returns or throws, no change is still running. A repeated
 * call does not change a prospect a second time.
 */
export async function changeProspects(
  context: ApiContext,
  caller: Caller,
  ofImport: ImportOfChanges,
  rows: readonly ChangedRow[],
  { atOnce = CHANGES_AT_ONCE, onProgress = async () => undefined }: Changing = {},
): Promise<{ readonly faults: readonly RowFault[]; readonly warnings: number }> {
  const faults: RowFault[] = [];
  let warnings = 0;
  for (let at = 0; at < rows.length; at += ROWS_TOGETHER) {
    await onProgress(at - faults.length);
    await mapConcurrently(rows.slice(at, at + ROWS_TOGETHER), atOnce, async ({ row, change }) => {
      const { message, warnings: own } = await changeByRow(context, caller, ofImport, change);
      if (message !== undefined) faults.push({ row, message });
      warnings += own;
    });
  }
  return { faults: faults.sort((a, b) => a.row - b.row), warnings };
}
