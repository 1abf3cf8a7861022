/** Imports the rows of a checked file, and makes all its new prospects visible with one transaction. */
import type { Caller } from "#shared/auth/caller.ts";
import { importedWrite } from "#shared/company-index/activity/log.ts";
import { ImportCollector } from "#shared/company-index/facts.ts";
import type { Commit } from "#shared/company-index/manifest.ts";
import { addPart, completePart, storeSegments } from "#shared/company-index/write/publish.ts";
import { type ImportWork, type OpenFile, unlessReportLost } from "#shared/jobs/import/check.ts";
import { rowsAlongCurve } from "#shared/jobs/import/chunks.ts";
import { pieceNames } from "#shared/jobs/import/lifecycle.ts";
import type { ImportContext } from "#shared/jobs/import/names.ts";
import { writeRows } from "#shared/jobs/import/write.ts";

/** Upper bound for publishing a million rows. An invocation with less time leaves it to a new one. */
const PUBLISH_MS = 300_000;

interface Checked {
  readonly file: OpenFile;
  /** Makes the prospects visible with the writes `moves`, and completes the import, in one transaction. */
  readonly commit: Commit;
}

/** Imports a checked file. Returns false if the time is too short for the rest. */
export async function importRows(
  context: ImportContext,
  job: ImportWork,
  caller: Caller,
  { file, commit }: Checked,
): Promise<boolean> {
  const { total, changes, progress } = job.stored;
  if (total === undefined) throw new Error("rows cannot be written before they are counted");
  const mustWrite = progress.step === "write" && (total.prospect > 0 || changes !== 0);
  if (mustWrite && !(await unlessReportLost(job, () => writeRows(context, job, caller, file)))) return false;
  if (total.prospect === 0) {
    await commit([]);
    return true;
  }
  if (job.isLate(PUBLISH_MS)) return false;
  await publishRows(context, job, commit);
  return true;
}

/** Merges the sorted chunks of index rows, and stores them in the company index. */
async function publishRows(context: ImportContext, job: ImportWork, commit: Commit): Promise<void> {
  const { companyId, id, createdBy, total, first, progress } = job.stored;
  if (total === undefined || first === undefined) throw new Error("rows cannot be published before they are counted");
  const newId = pieceNames(id);
  const rows = await rowsAlongCurve(context.objects, { companyId, id }, progress.chunks);
  const range = { from: first.prospect, to: first.prospect + total.prospect - 1 };
  const collector = new ImportCollector(createdBy, range.from, range.to);
  const passing = collector.passing(rows);
  const segments = await storeSegments(context.table, companyId, passing, newId, () => job.heartbeat({}));
  const noOverrides = { prospects: [], notes: [], looseNotes: [] };
  const part = await completePart(context.table, companyId, segments, noOverrides, newId);
  // Throws if another invocation has taken the job. That invocation stores the same index rows under the same names.
  await job.heartbeat({});
  const others = (version: number) => [importedWrite(companyId, version, collector.facts)];
  await addPart(context, companyId, part, { range, others }, commit);
}
