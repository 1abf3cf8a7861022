/** Reads the prospects of an export with their newest notes. A block of 128 ids is read as a whole if the export needs many of them. */
import * as z from "zod/mini";
import { mapConcurrently } from "#shared/all-ended.ts";
import { VersionedCache } from "#shared/cache.ts";
import type { ProspectRef } from "#shared/company-index/search/page.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Consistency, QuerySpec, Reads } from "#shared/db/reads.ts";
import { pageProspect, StoredNote, type StoredProspect } from "#shared/prospects/stored.ts";
import { Id } from "#shared/schema.ts";

const ExportedNote = z.pick(StoredNote, { prospectId: true, body: true });
type ExportedNote = z.infer<typeof ExportedNote>;

/** The row with the number of a prospect's notes. Imported notes do not count. */
const NoteCount = z.object({ prospectId: Id, notes: z.int() });

const noteFields = Object.keys(ExportedNote.shape);

export interface ExportRow {
  readonly prospect: StoredProspect;
  readonly note: ExportedNote | undefined;
}

/** If the export needs this number of prospects of a block, reading the whole block costs no more than single reads. */
const WORTH_A_BLOCK = 16;
/** If a prospect has more notes, the Query of a block's notes leaves them out, and a separate Query reads the newest one. */
const FEW_NOTES = 4;
const PARALLEL = 12;
/** Maximum bytes of cached blocks. A block is cached while later batches of the export need other prospects of it. */
const CACHE_BYTES = 16_000_000;
const ROW_BYTES = 2_000;

type Rows = Map<number, ExportRow>;

export type Wanted = Pick<ProspectRef, "id" | "version">;

/**
 * Returns a function that reads a batch of prospects, and returns undefined for a prospect without a row. `counts` has the number of the
 * export's prospects in each block. If `isWhole` is true, the rows keep their custom fields. Rows that are missing or older than the index
 * are read again, with strong consistency.
 */
export function exportRows(
  table: Reads,
  companyId: number,
  counts: ReadonlyMap<number, number>,
  isWhole = false,
): (batch: readonly Wanted[]) => Promise<(ExportRow | undefined)[]> {
  const left = new Map(counts);
  const cache = new VersionedCache<Rows>({ maxBytes: CACHE_BYTES, bytesOf });

  async function rowsOf(block: number, ids: readonly number[]): Promise<Rows[]> {
    const wanted = left.get(block) ?? 0;
    left.set(block, wanted - ids.length);
    const known = cache.get(block)?.value;
    if (known === undefined && wanted < WORTH_A_BLOCK) {
      return [await readSome(table, companyId, ids, "eventual", isWhole)];
    }
    const rows = known ?? (await readBlock(table, companyId, block, isWhole));
    if (wanted <= ids.length) cache.delete(block);
    // The export reads each block once, so the version of the cached rows has no meaning.
    else if (known === undefined) cache.set(block, 0, rows);
    return [rows];
  }

  return async (batch) => {
    const found: Rows = new Map();
    const ids = batch.map(({ id }) => id);
    const blocks = await mapConcurrently([...Map.groupBy(ids, keys.blockOf)], PARALLEL, ([block, own]) =>
      rowsOf(block, own),
    );
    for (const rows of blocks.flat()) for (const [id, row] of rows) found.set(id, row);
    const isStale = ({ id, version }: Wanted): boolean => {
      const row = found.get(id);
      return row === undefined || row.prospect.version < version;
    };
    const staleIds = batch.filter(isStale).map(({ id }) => id);
    for (const [id, row] of await readSome(table, companyId, staleIds, "strong", isWhole)) found.set(id, row);
    return ids.map((id) => found.get(id));
  };
}

async function readSome(
  table: Reads,
  companyId: number,
  ids: readonly number[],
  consistency: Consistency,
  isWhole: boolean,
): Promise<Rows> {
  const [items, notes] = await Promise.all([
    table.batchGet(
      ids.map((id) => keys.prospect(companyId, id)),
      { consistency },
    ),
    mapConcurrently(ids, PARALLEL, (id) => notesIn(table, newestOf(companyId, id), consistency)),
  ]);
  return rowsFrom(items, notes.flat(), isWhole);
}

async function readBlock(table: Reads, companyId: number, block: number, isWhole: boolean): Promise<Rows> {
  const spec = { ...attachedKeys.prospectsAndCounts(companyId, block), consistency: "eventual" } as const;
  const rows = await Array.fromAsync(table.query(spec));
  const items = rows.filter(({ type }) => type === "prospect");
  const counts = rows.filter(({ type }) => type !== "prospect").map((row) => NoteCount.parse(row));
  const manyNotes = new Set(counts.filter(({ notes }) => notes > FEW_NOTES).map(({ prospectId }) => prospectId));
  const ids = items.map(({ id }) => Id.parse(id));
  const reads = noteReads(companyId, ids, manyNotes);
  const notes = await mapConcurrently(reads, PARALLEL, (read) => notesIn(table, read, "eventual"));
  return rowsFrom(items, notes.flat(), isWhole);
}

function noteReads(companyId: number, ids: readonly number[], manyNotes: ReadonlySet<number>): QuerySpec[] {
  const reads: QuerySpec[] = [];
  let run: number[] = [];
  const close = (): void => {
    const [first, last] = [run[0], run.at(-1)];
    if (first !== undefined) reads.push(attachedKeys.notes(companyId, first, last));
    run = [];
  };
  for (const id of ids) {
    if (manyNotes.has(id)) {
      close();
      reads.push(newestOf(companyId, id));
    } else run.push(id);
  }
  close();
  return reads;
}

const newestOf = (companyId: number, id: number): QuerySpec => ({
  ...attachedKeys.notes(companyId, id),
  newestFirst: true,
  limit: 1,
});

const notesIn = (table: Reads, read: QuerySpec, consistency: Consistency): Promise<ExportedNote[]> =>
  Array.fromAsync(table.query({ ...read, fields: noteFields, consistency }), (item) => ExportedNote.parse(item));

function rowsFrom(items: readonly Item[], notes: readonly ExportedNote[], isWhole: boolean): Rows {
  // A Query returns the notes of a prospect in ascending order of time, so the map keeps the newest one.
  const newest = new Map(notes.map((note) => [note.prospectId, note]));
  return new Map(
    items.map((item) => {
      const prospect = withoutLargeFields(pageProspect(item), isWhole);
      return [prospect.id, { prospect, note: newest.get(prospect.id) }];
    }),
  );
}

/** Removes fields that may be large and that the exported file lacks. The file has custom fields only if `isWhole` is true. */
const withoutLargeFields = (prospect: StoredProspect, isWhole: boolean): StoredProspect => ({
  ...prospect,
  customFieldData: isWhole ? prospect.customFieldData : null,
  lastStatusChange: null,
  upcoming: [],
  later: [],
});

function bytesOf(rows: Rows): number {
  let bytes = 0;
  for (const { prospect, note } of rows.values()) {
    bytes += ROW_BYTES + 2 * ((note?.body.length ?? 0) + (prospect.customFieldData?.length ?? 0));
  }
  return bytes;
}
