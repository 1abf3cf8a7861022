/**
 * The step of an import that writes the rows of a checked file. It changes existing prospects. It writes new prospects to the table, where
 * they stay invisible until the import is completed, and their index rows to the bucket, in sorted chunks.
 */
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { importedWrite } from "#shared/company-index/activity/log.ts";
import { ImportCollector } from "#shared/company-index/facts.ts";
import type { Commit } from "#shared/company-index/manifest.ts";
import { addPart, completePart, storeSegments } from "#shared/company-index/write/publish.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import { unpacked } from "#shared/db/packed.ts";
import {
  addTags,
  fileOf,
  type ImportContext,
  type ImportNames,
  type ImportWork,
  LEASE_RENEWAL_MS,
  type OpenFile,
  sizeOf,
  unlessReportLost,
} from "#shared/jobs/import/check.ts";
import { Chunk, rowsAlongCurve } from "#shared/jobs/import/chunks.ts";
import { ErrorReport } from "#shared/jobs/import/error-report.ts";
import { pieceNames } from "#shared/jobs/import/lifecycle.ts";
import { type Batch, batchesOf, type FaultyRow, isLast, NewTags, plus } from "#shared/jobs/import/read-file.ts";
import { type ImportPlan, leaseImportIds, rowsOf } from "#shared/jobs/import/rows.ts";
import { beginningOf, type Counts, type Progress, RowFaults, type StoredImport } from "#shared/jobs/import/stored.ts";
import { changesAtOnce } from "#shared/jobs/job.ts";
import { changeByRow } from "#shared/prospects/csv/change.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";

/** Items written between two checks of the lease. A throttled table may accept only four a second, so this takes at most 50 seconds. */
const ITEMS_PER_RENEWAL = 200;
/** Changed prospects between two reports of the progress. */
const ROWS_TOGETHER = 96;
/** Rows between two checkpoints. After a crash, at most this number of rows is handled again, within some seconds. */
const CHECKPOINT_ROWS = 16_384;

/** The first invocation of the step `write` reserves ids and creates tags. Later invocations use the stored values. */
async function planRows(context: ImportContext, job: ImportWork, names: ImportNames): Promise<ImportPlan> {
  const { companyId, id: importId, total, first, startedAt, progress } = job.stored;
  if (total === undefined) throw new Error("rows cannot be written before they are counted");
  if (first !== undefined && startedAt !== undefined) return { importId, names, now: startedAt, first, total };
  const known = await addTags(context, job.stored, names, progress.newTags);
  if (total.prospect === 0) return { importId, names: known, now: iso(context.clock.now()), first: total, total };
  const leased = await leaseImportIds(context.ids, companyId, importId, total);
  const now = iso(context.clock.now());
  await job.save({ ...leased, startedAt: now, progress: { ...progress, newTags: [] } });
  return { importId, names: known, now, first: leased.first, total };
}

/** Returns false if the time is too short. The next invocation begins at the last checkpoint, and changes no prospect a second time. */
export async function writeRows(
  context: ImportContext,
  job: ImportWork,
  caller: Caller,
  file: OpenFile,
): Promise<boolean> {
  const plan = await planRows(context, job, file.names);
  const { stored } = job;
  const { dictionary } = plan.names;
  const tags = new NewTags(dictionary, stored.progress.newTags);
  const report = await ErrorReport.open(context.objects, stored, sizeOf(stored).errors);
  const writer = new RowWriter({ context, job, caller, plan, file, report });
  const reported = unpacked(RowFaults, stored.errors).map(({ row }) => row);
  const known = new Set(file.matching === undefined ? reported : []);
  const reading = { ...file, dictionary, tags, known, after: stored.progress.row };
  try {
    for await (const batch of batchesOf(fileOf(context, stored), reading)) {
      await writer.add(batch);
      if (isLast(batch) || !writer.isDue) continue;
      await writer.checkpoint(tags.values);
      if (writer.isLate) return false;
    }
    await writer.finish();
    return true;
  } finally {
    // Wait for the writes of the last batch, because nothing may write after the invocation has ended.
    await writer.ended().catch(() => undefined);
  }
}

interface Writing {
  readonly context: ImportContext;
  readonly job: ImportWork;
  readonly caller: Caller;
  readonly plan: ImportPlan;
  readonly file: OpenFile;
  readonly report: ErrorReport;
}

/** Writes the rows of batches. If rows change prospects, collects the errors again: a prospect may have been deleted since the check. */
class RowWriter {
  readonly #of: Writing;
  readonly #chunk: Chunk;
  #at: Pick<Progress, "done" | "row" | "updated">;
  #warnings: number;
  #checkpointRow: number;
  /** The writes of the new prospects of one batch, while the next batch is being read. */
  #running: Promise<void> = Promise.resolve();
  /** The longest time of the writes of one batch. The invocation stops if the writes of another batch would not end in time. */
  #longestMs = 0;

  constructor(of: Writing) {
    const { progress, warnings } = of.job.stored;
    this.#of = of;
    this.#chunk = new Chunk(of.context.objects, of.job.stored, progress.chunks);
    this.#at = { done: progress.done, row: progress.row, updated: progress.updated };
    this.#warnings = warnings;
    this.#checkpointRow = progress.row;
  }

  get isLate(): boolean {
    return this.#of.job.isLate(this.#longestMs);
  }

  get isDue(): boolean {
    return this.#at.row - this.#checkpointRow >= CHECKPOINT_ROWS || this.#chunk.isFull || this.isLate;
  }

  async add(batch: Batch): Promise<void> {
    const { job, plan, file, report } = this.#of;
    const { companyId, createdBy: userId } = job.stored;
    const { done, updated } = this.#at;
    const next = plus(done, batch);
    if (exceeds(next, plan.total)) throw new BadFile(CHANGED_READING);
    const { items, indexed } = rowsOf({ companyId, userId, ...job.stored.caller }, plan, done, batch.drafts);
    await this.ended();
    const late = await this.#changeProspects(batch);
    if (file.matching !== undefined) await report.add([...batch.faults, ...late].sort((a, b) => a.row - b.row));
    this.#at = { ...this.#at, updated: updated + batch.changes.length - late.length };
    await job.heartbeat(this.#shown());
    this.#running = this.#writeItems(items);
    // Prevents an unhandled rejection. `ended` throws the error.
    this.#running.catch(() => undefined);
    this.#at = { ...this.#at, done: next, row: batch.row };
    this.#chunk.add(indexed);
  }

  /** Returns a fault for each row whose prospect can no longer be changed. A repeated call does not change a prospect a second time. */
  async #changeProspects({ changes }: Batch): Promise<FaultyRow[]> {
    const { context, job, caller, plan, file } = this.#of;
    const faults: FaultyRow[] = [];
    if (file.matching === undefined) return faults;
    const ofImport = { importId: String(plan.importId), by: file.matching.by, ...plan.names };
    for (let at = 0; at < changes.length; at += ROWS_TOGETHER) {
      await job.heartbeat(this.#shown(at - faults.length));
      await mapConcurrently(changes.slice(at, at + ROWS_TOGETHER), changesAtOnce(), async ({ row, change }) => {
        const { message, warnings } = await changeByRow(context, caller, ofImport, change);
        if (message !== undefined) faults.push({ row, fault: message });
        this.#warnings += warnings;
      });
    }
    return faults;
  }

  async checkpoint(newTags: string[]): Promise<void> {
    const { job, file, report } = this.#of;
    await this.ended();
    const at = { ...this.#at, skipped: report.count, newTags, chunks: await this.#chunk.store() };
    const found = file.matching && { errors: report.shown, warnings: this.#warnings };
    const state = file.matching && { report: await report.checkpoint(at.row) };
    await job.save({ ...this.#shown(), ...found, runs: 0, progress: { ...job.stored.progress, ...at, ...state } });
    this.#checkpointRow = at.row;
  }

  async finish(): Promise<void> {
    const { job, file, report } = this.#of;
    await this.ended();
    const progress = { ...beginningOf("publish"), chunks: await this.#chunk.store() };
    const found = file.matching && {
      errors: report.shown,
      skipped: report.count,
      warnings: this.#warnings,
      hasReport: await report.finish(),
    };
    await job.save({ ...this.#shown(), ...found, updated: this.#at.updated, runs: 0, progress });
  }

  ended(): Promise<void> {
    return this.#running;
  }

  /** Writes the items, and renews the lease meanwhile, because a throttled table makes the writes slow. */
  async #writeItems(items: readonly (Key & Item)[]): Promise<void> {
    const { context, job } = this.#of;
    const begunAt = context.clock.now();
    for (let at = 0; at < items.length; at += ITEMS_PER_RENEWAL) {
      await job.heartbeat({}, LEASE_RENEWAL_MS);
      await context.table.batchPut(items.slice(at, at + ITEMS_PER_RENEWAL));
    }
    this.#longestMs = Math.max(this.#longestMs, context.clock.now() - begunAt);
  }

  /** Returns the progress that clients see. After a crash, the stored progress may be higher than `#at`, and must not decrease. */
  #shown(changed = 0): Pick<StoredImport, "updated" | "written"> {
    const { stored } = this.#of.job;
    const updated = this.#at.updated + changed;
    return {
      updated: Math.max(stored.updated, updated),
      written: Math.max(stored.written, this.#at.done.prospect + updated),
    };
  }
}

/** The reserved ids are not enough if a new release accepts rows that were faulty for the release that checked the file. */
const CHANGED_READING = "The service was updated while it imported the file. Import the file again.";
const exceeds = (done: Counts, total: Counts): boolean =>
  (["prospect", "address", "note", "change"] as const).some((kind) => done[kind] > total[kind]);

/** Upper bound for the time of publishing a million rows. An invocation that has less time leaves the publication to a new invocation. */
const PUBLISH_MS = 300_000;

/** `commit` makes the prospects visible, and completes the import, in one transaction. Returns false if the time is too short. */
export async function importRows(
  context: ImportContext,
  job: ImportWork,
  caller: Caller,
  file: OpenFile,
  commit: Commit,
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

async function publishRows(context: ImportContext, job: ImportWork, commit: Commit): Promise<void> {
  const { companyId, id, createdBy, total, first, progress } = job.stored;
  if (total === undefined || first === undefined) throw new Error("rows cannot be published before they are counted");
  const options = { newId: pieceNames(id), between: () => job.heartbeat({}) };
  const rows = await rowsAlongCurve(context.objects, job.stored, progress.chunks);
  const range = { from: first.prospect, to: first.prospect + total.prospect - 1 };
  const collector = new ImportCollector(createdBy, range.from, range.to);
  const passing = collector.passing(rows);
  const segments = await storeSegments(context.table, companyId, passing, options);
  const noOverrides = { prospects: [], notes: [], looseNotes: [] };
  const part = await completePart(context.table, companyId, segments, noOverrides, options);
  // Throws if another invocation has taken the job. That invocation stores the same index rows under the same names.
  await job.heartbeat({});
  const others = (version: number) => [importedWrite(companyId, version, collector.facts)];
  await addPart(context, companyId, part, { range, others }, commit);
}
