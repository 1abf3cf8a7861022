/** The second reading of an uploaded file: its rows go into the table, under ids that nobody knows yet. */
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import { type Batch, batchesOf, plus } from "#shared/imports/batches.ts";
import type { HeldImport } from "#shared/imports/held.ts";
import { blocksOf, leaseForImport } from "#shared/imports/ids.ts";
import { type KnownNames, nameTags } from "#shared/imports/names.ts";
import { fileKeys } from "#shared/imports/places.ts";
import { NewTags, readRows } from "#shared/imports/read-file.ts";
import { type ImportRows, importRows } from "#shared/imports/rows.ts";
import type { Counts } from "#shared/imports/schema.ts";
import { keepStretch } from "#shared/imports/stretch.ts";
import type { JobWorld } from "#shared/jobs/world.ts";

/** Rows that are sorted at once, and the characters of what the search looks into. */
const STRETCH_ROWS = 16_384;
const STRETCH_TEXT = 8_000_000;

/** Ids, instant and tags are decided once. */
export async function planRows(world: JobWorld, held: HeldImport, names: KnownNames): Promise<KnownNames> {
  const { companyId, id } = held.stored;
  const { job } = held;
  if (job.first !== null) return names;
  const { total, progress } = job;
  if (total === null) throw new Error("rows are written before they are counted");
  const known = await nameTags(world, companyId, id, names, progress.newTags);
  const first = await leaseForImport(world.ids, companyId, id, total);
  await held.save({
    prospectBlocks: blocksOf(first.prospect, total.prospect),
    addressBlocks: blocksOf(first.address, total.address),
    noteBlocks: blocksOf(first.note, total.note),
    job: { ...job, first, startedAt: iso(world.clock.now()), progress: { ...progress, newTags: [] } },
  });
  return known;
}

/** False: it was handed over. */
export async function writeRows(world: JobWorld, held: HeldImport, names: KnownNames): Promise<boolean> {
  const { companyId, id } = held.stored;
  const { job } = held;
  const tags = new NewTags(names.dictionary, job.progress.newTags);
  let { done, stretches } = job.progress;
  let [waiting, text]: [RowWithNotes[], number] = [[], 0];
  const bytes = world.objects.read(fileKeys.uploaded(companyId, id), job.etag ?? "");
  const reading = { dictionary: names.dictionary, tags, mapping: held.mapping, after: job.progress.row };
  const keep = async (row: number): Promise<void> => {
    await keepStretch(world.objects, { companyId, id }, stretches++, waiting);
    [waiting, text] = [[], 0];
    const progress = { ...job.progress, done, row, stretches, newTags: tags.values };
    await held.save({ job: { ...job, runs: 0, progress } });
  };
  let last = job.progress.row;
  for await (const batch of batchesOf(readRows(bytes, reading))) {
    await held.keep({});
    const { items, indexed } = rowsOf(held, names, done, batch);
    await world.table.batchPut(items);
    done = plus(done, batch);
    last = batch.row;
    for (const entry of indexed) {
      waiting.push(entry);
      text += entry.row.text.length + entry.notes.reduce((sum, note) => sum + note.text.length, 0);
    }
    if (waiting.length < STRETCH_ROWS && text < STRETCH_TEXT && !held.isLate()) continue;
    await keep(last);
    if (!held.isLate()) continue;
    await held.release({});
    return false;
  }
  if (waiting.length > 0) await keep(last);
  return true;
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
