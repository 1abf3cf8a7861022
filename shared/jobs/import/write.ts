/** The second reading of an uploaded file: its rows go into the table, under ids that nobody knows yet. */
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import type { JobContext } from "#shared/context.ts";
import type { Item } from "#shared/db/item.ts";
import type { Key } from "#shared/db/keys.ts";
import { type Batch, batchesOf, plus } from "#shared/jobs/import/batches.ts";
import { keepStretch } from "#shared/jobs/import/chunk.ts";
import { blocksOf, leaseForImport } from "#shared/jobs/import/ids.ts";
import type { HeldImport } from "#shared/jobs/import/lease.ts";
import { type KnownNames, nameTags } from "#shared/jobs/import/names.ts";
import { NewTags, readRows } from "#shared/jobs/import/read-file.ts";
import { type ImportRows, importRows } from "#shared/jobs/import/rows.ts";
import { fileKeys } from "#shared/jobs/import/s3-keys.ts";
import type { Counts, Progress } from "#shared/jobs/import/schema.ts";

/** Items that are written between two renewals of the lease: a throttled table may take four of them a second. */
const ITEMS_PER_RENEWAL = 200;
/** Within a batch the lease is renewed this often: it ends after two minutes. */
const LEASE_RENEWAL_MS = 60_000;
/** Rows that are sorted at once, and the characters of what the search looks into. */
const STRETCH_ROWS = 16_384;
const STRETCH_TEXT = 8_000_000;

/** Ids, instant and tags are decided once. */
export async function planRows(context: JobContext, held: HeldImport, names: KnownNames): Promise<KnownNames> {
  const { companyId, id } = held.stored;
  const { job } = held;
  if (job.first !== null) return names;
  const { total, progress } = job;
  if (total === null) throw new Error("rows are written before they are counted");
  const known = await nameTags(context, companyId, id, names, progress.newTags);
  const first = await leaseForImport(context.ids, companyId, id, total);
  await held.save({
    prospectBlocks: blocksOf(first.prospect, total.prospect),
    addressBlocks: blocksOf(first.address, total.address),
    noteBlocks: blocksOf(first.note, total.note),
    job: { ...job, first, startedAt: iso(context.clock.now()), progress: { ...progress, newTags: [] } },
  });
  return known;
}

/** False: it was handed over. While one batch is being written, the next is read. */
export async function writeRows(context: JobContext, held: HeldImport, names: KnownNames): Promise<boolean> {
  const { job } = held;
  const tags = new NewTags(names.dictionary, job.progress.newTags);
  let writing: Promise<void> = Promise.resolve();
  const stretch = new Stretch(context, held);
  let { done, row } = job.progress;
  /** The longest that a batch took so far: a run hands over while another one would still fit. */
  let longestMs = 0;
  const bytes = context.objects.read(fileKeys.uploaded(held.stored.companyId, held.stored.id), job.etag ?? "");
  const reading = { dictionary: names.dictionary, tags, mapping: held.mapping, after: row };
  const keep = async (): Promise<void> => {
    await writing;
    await stretch.keep({ done, row, newTags: tags.values });
  };
  try {
    for await (const batch of batchesOf(readRows(bytes, reading))) {
      const { items, indexed } = rowsOf(held, names, done, batch);
      await writing;
      const written = Math.max(held.stored.written ?? 0, done.prospect);
      await held.keep({ written });
      const begunAt = context.clock.now();
      writing = writeItems(context, held, items, written).then(() => {
        longestMs = Math.max(longestMs, context.clock.now() - begunAt);
      });
      // Thrown where it is awaited.
      writing.catch(() => undefined);
      done = plus(done, batch);
      row = batch.row;
      stretch.add(indexed);
      if (!stretch.isFull && !held.isLate(longestMs)) continue;
      await keep();
      if (!held.isLate(longestMs)) continue;
      await held.release({});
      return false;
    }
    if (!stretch.isEmpty) await keep();
    return true;
  } finally {
    // Nothing is written any more when the run is over, however it ends.
    await writing.catch(() => undefined);
  }
}

/** A table that throttles takes its time: the lease is renewed meanwhile. Nobody else writes the job's row. */
async function writeItems(
  context: JobContext,
  held: HeldImport,
  items: readonly (Key & Item)[],
  written: number,
): Promise<void> {
  for (let at = 0; at < items.length; at += ITEMS_PER_RENEWAL) {
    await held.keep({ written }, LEASE_RENEWAL_MS);
    await context.table.batchPut(items.slice(at, at + ITEMS_PER_RENEWAL));
  }
}

/** Rows that are in the table and wait to be sorted. */
class Stretch {
  readonly #context: JobContext;
  readonly #held: HeldImport;
  #rows: RowWithNotes[] = [];
  #text = 0;
  #stretches: number;

  constructor(context: JobContext, held: HeldImport) {
    this.#context = context;
    this.#held = held;
    this.#stretches = held.job.progress.stretches;
  }

  get isFull(): boolean {
    return this.#rows.length >= STRETCH_ROWS || this.#text >= STRETCH_TEXT;
  }

  get isEmpty(): boolean {
    return this.#rows.length === 0;
  }

  add(entries: readonly RowWithNotes[]): void {
    for (const entry of entries) {
      this.#rows.push(entry);
      this.#text += entry.row.text.length + entry.notes.reduce((sum, note) => sum + note.text.length, 0);
    }
  }

  /** Sorted, into the bucket; whoever goes on begins after these. */
  async keep(at: Pick<Progress, "done" | "row" | "newTags">): Promise<void> {
    const { companyId, id } = this.#held.stored;
    const { job } = this.#held;
    await keepStretch(this.#context.objects, { companyId, id }, this.#stretches++, this.#rows);
    this.#rows = [];
    this.#text = 0;
    const progress = { ...job.progress, ...at, stretches: this.#stretches };
    await this.#held.save({ job: { ...job, runs: 0, progress } });
  }
}

/** Of ids in ascending order the first rows of the file get the highest. */
function rowsOf(held: HeldImport, { dictionary, tagIds }: KnownNames, done: Counts, { drafts }: Batch): ImportRows {
  const { companyId, id, createdBy: userId } = held.stored;
  const { first, total, startedAt, caller } = held.job;
  if (first === null || total === null || startedAt === null)
    throw new Error("rows are written before they are planned");
  const own: Caller = { companyId, userId, ...caller };
  const ids = {
    prospect: first.prospect + total.prospect - done.prospect - drafts.length,
    address: first.address + done.address,
    note: first.note + done.note,
    change: first.change + done.change,
  };
  return importRows(own, { importId: String(id), now: startedAt, dictionary, tagIds, first: ids }, drafts);
}
