/**
 * Writes the rows of a checked file: changes existing prospects, and writes the new ones to the table, where they are still invisible, and
 * their index rows to the bucket, in sorted chunks.
 */
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext, AppContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import { changesAtOnce } from "#shared/jobs/changes-at-once.ts";
import { fileOf, type ImportWork, LEASE_RENEWAL_MS, type OpenFile, sizeOf } from "#shared/jobs/import/check.ts";
import { Chunk } from "#shared/jobs/import/chunks.ts";
import { ErrorReport } from "#shared/jobs/import/error-report.ts";
import { addTags, type ImportContext, type ImportNames } from "#shared/jobs/import/names.ts";
import { type Batch, batchesOf, type FaultyRow, NewTags, plus } from "#shared/jobs/import/read-file.ts";
import { type ImportPlan, leaseImportIds, rowsOf } from "#shared/jobs/import/rows.ts";
import { beginningOf, type Counts } from "#shared/jobs/import/stored.ts";
import { changeByRow } from "#shared/prospects/csv/change.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";

/** Items between two checks of the lease. A throttled table may accept only four a second, so this is at most 50 seconds. */
const ITEMS_PER_RENEWAL = 200;
/** Rows between two checkpoints. After a crash, these are handled again within some seconds. */
const CHECKPOINT_ROWS = 16_384;

/** The first invocation of the step reserves ids, sets the creation time and creates tags. Later ones use the stored values. */
async function planRows(context: ImportContext, job: ImportWork, names: ImportNames): Promise<ImportPlan> {
  const { companyId, id: importId, total, first, startedAt, progress } = job.stored;
  if (total === undefined) throw new Error("rows cannot be written before they are counted");
  if (first !== undefined && startedAt !== undefined) return { importId, names, now: startedAt, first, total };
  const known = await addTags(context, { companyId, id: importId }, names, progress.newTags);
  if (total.prospect === 0) return { importId, names: known, now: iso(context.clock.now()), first: total, total };
  const leased = await leaseImportIds(context.ids, companyId, importId, total);
  const now = iso(context.clock.now());
  await job.save({ ...leased, startedAt: now, progress: { ...progress, newTags: [] } });
  return { importId, names: known, now, first: leased.first, total };
}

/**
 * Writes the new prospects of each batch while the next one is being read. Collects the errors again if rows change prospects, because a
 * prospect may have been deleted since the check. Returns false if the time is too short for the rest. The next invocation begins at the
 * last checkpoint, and changes no prospect a second time.
 */
export async function writeRows(
  context: ImportContext,
  job: ImportWork,
  caller: Caller,
  file: OpenFile,
): Promise<boolean> {
  const plan = await planRows(context, job, file.names);
  const { stored } = job;
  const { companyId, createdBy: userId, progress } = stored;
  const { dictionary } = plan.names;
  const tags = new NewTags(dictionary, progress.newTags);
  const report = await ErrorReport.open(context.objects, stored, sizeOf(stored).errors);
  const writing = new Writing(context, job);
  const chunk = new Chunk(context.objects, stored, progress.chunks);
  let { done, row, updated } = progress;
  let { warnings } = stored;
  /** After a crash, the progress that clients see must not decrease. */
  const shown = (changed = 0) => ({
    updated: Math.max(job.stored.updated, updated + changed),
    written: Math.max(job.stored.written, done.prospect + updated + changed),
  });
  const checkpoint = async (): Promise<void> => {
    await writing.ended();
    const at = { done, row, updated, skipped: report.count, newTags: tags.values, chunks: await chunk.store() };
    const found = file.matching && { errors: report.shown, warnings };
    const state = file.matching && { report: await report.checkpoint(row) };
    await job.save({ ...shown(), ...found, runs: 0, progress: { ...progress, ...at, ...state } });
  };
  try {
    let last = row;
    for await (const batch of batchesOf(fileOf(context, stored), { ...file, dictionary, tags, after: row })) {
      const next = plus(done, batch);
      if (exceeds(next, plan.total)) throw new BadFile(CHANGED_READING);
      const { items, indexed } = rowsOf({ companyId, userId, ...stored.caller }, plan, done, batch.drafts);
      await writing.ended();
      const late = await changeProspects(context, caller, { plan, file }, batch, (changed) =>
        job.heartbeat(shown(changed)),
      );
      if (file.matching !== undefined) await report.add(inOrder([...batch.faults, ...late.faults]));
      updated += batch.changes.length - late.faults.length;
      warnings += late.warnings;
      await job.heartbeat(shown());
      writing.begin(items);
      done = next;
      row = batch.row;
      chunk.add(indexed);
      if (row - last < CHECKPOINT_ROWS && !chunk.isFull && !job.isLate(writing.longestMs)) continue;
      await checkpoint();
      last = row;
      if (job.isLate(writing.longestMs)) return false;
    }
    await writing.ended();
    const chunks = await chunk.store();
    const found = file.matching && {
      errors: report.shown,
      skipped: report.count,
      warnings,
      hasReport: await report.finish(),
    };
    const after = { ...beginningOf("publish"), chunks };
    await job.save({ ...shown(), ...found, updated, runs: 0, progress: after });
    return true;
  } finally {
    // Nothing may write after the invocation has ended.
    await writing.ended().catch(() => undefined);
  }
}

const inOrder = (faults: readonly FaultyRow[]): FaultyRow[] => faults.toSorted((a, b) => a.row - b.row);

/** The reserved ids are not enough if a new release accepts rows that were faulty for the release that checked the file. */
const CHANGED_READING = "The service was updated while it imported the file. Import the file again.";
const exceeds = (done: Counts, total: Counts): boolean =>
  done.prospect > total.prospect ||
  done.address > total.address ||
  done.note > total.note ||
  done.change > total.change;

/** Number of rows between two calls of `onProgress`. */
const ROWS_TOGETHER = 96;

/**
 * Changes existing prospects. Returns a fault for each row whose prospect can no longer be changed, and the number of values that were left
 * out. When it returns or throws, no change is still running. A repeated call does not change a prospect a second time.
 */
async function changeProspects(
  context: ApiContext,
  caller: Caller,
  { plan, file: { matching } }: { readonly plan: ImportPlan; readonly file: OpenFile },
  { changes }: Batch,
  onProgress: (changed: number) => Promise<void>,
): Promise<{ readonly faults: readonly FaultyRow[]; readonly warnings: number }> {
  const faults: FaultyRow[] = [];
  let warnings = 0;
  if (matching === undefined) return { faults, warnings };
  const ofImport = { importId: String(plan.importId), by: matching.by, ...plan.names };
  for (let at = 0; at < changes.length; at += ROWS_TOGETHER) {
    await onProgress(at - faults.length);
    await mapConcurrently(changes.slice(at, at + ROWS_TOGETHER), changesAtOnce(), async ({ row, change }) => {
      const { message, warnings: own } = await changeByRow(context, caller, ofImport, change);
      if (message !== undefined) faults.push({ row, fault: message });
      warnings += own;
    });
  }
  return { faults, warnings };
}

/** Writes the items of one batch at a time. */
class Writing {
  readonly #context: Pick<AppContext, "table" | "clock">;
  readonly #job: ImportWork;
  #running: Promise<void> = Promise.resolve();
  /** Milliseconds of the slowest batch so far. The invocation stops if another one would not end in time. */
  longestMs = 0;

  constructor(context: Pick<AppContext, "table" | "clock">, job: ImportWork) {
    this.#context = context;
    this.#job = job;
  }

  begin(items: readonly (Key & Item)[]): void {
    this.#running = this.#write(items);
    // Prevents an unhandled rejection. `ended` throws the error.
    this.#running.catch(() => undefined);
  }

  ended(): Promise<void> {
    return this.#running;
  }

  /** Renews the lease meanwhile, because a throttled table makes the writes slow. */
  async #write(items: readonly (Key & Item)[]): Promise<void> {
    const { table, clock } = this.#context;
    const begunAt = clock.now();
    for (let at = 0; at < items.length; at += ITEMS_PER_RENEWAL) {
      await this.#job.heartbeat({}, LEASE_RENEWAL_MS);
      await table.batchPut(items.slice(at, at + ITEMS_PER_RENEWAL));
    }
    this.longestMs = Math.max(this.longestMs, clock.now() - begunAt);
  }
}
