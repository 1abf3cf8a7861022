/** Checks an uploaded file before any row is written: it finds every error, counts the new records, and writes the error report. */
import * as z from "zod/mini";
import type { JobContext } from "#shared/context.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import { ErrorReport } from "#shared/jobs/import/error-report.ts";
import type { ImportLease } from "#shared/jobs/import/lease.ts";
import { batchesOf, type FileReading, NewTags, noFindings, plus, readRows } from "#shared/jobs/import/read-file.ts";
import { beginningOf, RowFault } from "#shared/jobs/import/stored.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import * as limits from "#shared/limits.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";

/**
 * Checks the file. Returns false if the invocation has too little time for the rest of the file. Throws BadFile if the file cannot be
 * imported.
 */
export async function checkFile({ objects }: JobContext, lease: ImportLease, file: FileReading): Promise<boolean> {
  const { companyId, id } = lease.stored;
  const { job } = lease;
  const tags = new NewTags(file.dictionary, job.progress.newTags);
  const report = await ErrorReport.open(objects, { companyId, id }, job.progress.report);
  const shown = unpacked(z.array(RowFault), lease.stored.errors);
  // The counts continue from the checkpoint (the stored position from which the next invocation continues). Clients may have seen a higher
  // progress, because each renewal of the lease stores the progress, also between checkpoints.
  let { done, row, updated, skipped } = job.progress;
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
    if (processed > limits.jobRows) throw new BadFile(`The file may hold at most ${limits.jobRows} rows.`);
    shown.push(...batch.faults.slice(0, limits.jobErrors - shown.length));
    await report.add(batch.faults);
    if (lease.isLate()) {
      const paused = await report.checkpoint(row);
      const progress = { ...job.progress, done, row, updated, skipped, newTags: tags.values, report: paused };
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
  await lease.save({ ...counts(), imported: done.prospect, updated, ignoredColumns, job: checked });
  return true;
}
