/** The first reading of an uploaded file: all of it is checked, and counted, before anything is written. */

import * as z from "zod/mini";
import type { JobContext } from "#shared/context.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import { batchesOf, plus } from "#shared/jobs/import/batches.ts";
import type { HeldImport } from "#shared/jobs/import/lease.ts";
import type { KnownNames } from "#shared/jobs/import/names.ts";
import { NewTags, readRows } from "#shared/jobs/import/read-file.ts";
import { Report } from "#shared/jobs/import/report.ts";
import { fileKeys } from "#shared/jobs/import/s3-keys.ts";
import { RowFault } from "#shared/jobs/import/schema.ts";
import { limits } from "#shared/limits.ts";
import { BadFile } from "#shared/prospects/csv/bad-file.ts";

/** False: it was handed over. Throws BadFile. */
export async function checkFile(
  { objects }: JobContext,
  held: HeldImport,
  { dictionary }: KnownNames,
): Promise<boolean> {
  const { companyId, id } = held.stored;
  const { job } = held;
  const place = { companyId, id };
  const tags = new NewTags(dictionary, job.progress.newTags);
  const report = await Report.open(objects, place, job.progress.report);
  const shown = unpacked(z.array(RowFault), held.stored.errors);
  // The row's own counts may be ahead of where this run goes on: they are shown meanwhile.
  let { done, row, skipped } = job.progress;
  let processed = done.prospect + skipped;
  const bytes = objects.read(fileKeys.uploaded(companyId, id), job.etag ?? "");
  const reading = { dictionary, tags, mapping: held.mapping, after: row };
  const counts = () => ({ processed, skipped, errors: packed(shown) });
  for await (const batch of batchesOf(readRows(bytes, reading))) {
    done = plus(done, batch);
    row = batch.row;
    processed += batch.drafts.length + batch.faults.length;
    skipped += batch.faults.length;
    if (processed > limits.jobRows) throw new BadFile(`The file may hold at most ${limits.jobRows} rows.`);
    shown.push(...batch.faults.slice(0, limits.jobErrors - shown.length));
    await report.add(batch.faults);
    if (held.isLate()) {
      const paused = await report.pause(row);
      const progress = { ...job.progress, done, row, skipped, newTags: tags.values, report: paused };
      await held.release({ ...counts(), job: { ...job, progress } });
      return false;
    }
    await held.keep({ processed, skipped });
  }
  const hasReport = skipped > shown.length;
  if (hasReport) await report.finish();
  const progress = { ...held.begun("write"), newTags: tags.values };
  await held.save({ ...counts(), imported: done.prospect, job: { ...job, total: done, hasReport, runs: 0, progress } });
  return true;
}
