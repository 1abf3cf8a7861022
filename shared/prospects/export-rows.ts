/** The rows of an export with their newest notes: each block of ids is read once, as a whole, where enough of it is wanted. */
import * as z from "zod/mini";
import type { Place } from "#shared/company-index/page.ts";
import type { Consistency } from "#shared/db/batch.ts";
import { blockOf, keys } from "#shared/db/keys.ts";
import type { QuerySpec, Table } from "#shared/db/table.ts";
import { StoredNote } from "#shared/notes/schema.ts";
import { newestFirst } from "#shared/prospects/present.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";

/** What a file needs of a prospect. */
const Exported = z.pick(StoredProspect, {
  type: true,
  id: true,
  name: true,
  phoneNumber: true,
  emailAddress: true,
  lat: true,
  lng: true,
  address: true,
  statusId: true,
  assignedToUserId: true,
  tagIds: true,
  source: true,
  createdAt: true,
  createdBy: true,
  version: true,
  deletedAt: true,
});
const ExportedNote = z.pick(StoredNote, { type: true, id: true, prospectId: true, body: true, createdAt: true });

/** Fields that are read: answers of half the size, at the same price. */
const fields = Object.keys({ ...Exported.shape, ...ExportedNote.shape });

/** A prospect and the newest of its notes, as they are when they are read. */
export interface ExportRow {
  readonly prospect: z.infer<typeof Exported>;
  readonly note: z.infer<typeof ExportedNote> | undefined;
}

/** A block of rows of usual size costs about so many half units; fewer prospects are cheaper one by one. */
const WORTH_A_BLOCK = 24;
/** Queries at once. */
const PARALLEL = 12;
/** What is kept of blocks that the order of the list comes back to. A row without its note counts as 2 KB. */
const KEPT_BYTES = 16_000_000;
const ROW_BYTES = 2_000;

type Rows = Map<number, ExportRow>;

/** A prospect that is to be in the file, and which version of it the index knows. */
export type Wanted = Pick<Place, "id" | "version">;

/**
 * Gives the rows of the next places, in their order; undefined where a prospect is not there any more. Read eventually, at half
 * the price: a row that is behind what the index knows is read again. One that was written since is given as it is now.
 */
export function exportRows(
  table: Table,
  companyId: number,
  left: Map<number, number>,
): (places: readonly Wanted[]) => Promise<(ExportRow | undefined)[]> {
  const kept = new Map<number, Rows>();
  let keptBytes = 0;

  function drop(block: number): void {
    keptBytes -= bytesOf(kept.get(block));
    kept.delete(block);
  }

  function keep(block: number, rows: Rows): void {
    kept.set(block, rows);
    keptBytes += bytesOf(rows);
    for (const oldest of kept.keys()) {
      if (keptBytes <= KEPT_BYTES || oldest === block) break;
      drop(oldest);
    }
  }

  /** The rows of one block, or at least those that are wanted now. */
  async function rowsOf(block: number, ids: readonly number[]): Promise<Rows[]> {
    const wanted = left.get(block) ?? 0;
    left.set(block, wanted - ids.length);
    const known = kept.get(block);
    if (known === undefined && wanted < WORTH_A_BLOCK) {
      return inLanes(ids, (id) => read(table, rowsWith(companyId, id), "eventual"));
    }
    const rows = known ?? (await read(table, keys.prospectBlock(companyId, block), "eventual"));
    if (wanted <= ids.length) drop(block);
    else if (known === undefined) keep(block, rows);
    return [rows];
  }

  return async (places) => {
    const found: Rows = new Map();
    const ids = places.map(({ id }) => id);
    const blocks = await inLanes([...Map.groupBy(ids, blockOf)], ([block, own]) => rowsOf(block, own));
    for (const rows of blocks.flat()) for (const [id, row] of rows) found.set(id, row);
    const behind = places.filter(({ id, version }) => (found.get(id)?.prospect.version ?? 0) < version);
    for (const rows of await inLanes(behind, ({ id }) => read(table, rowsWith(companyId, id), "strong"))) {
      for (const [id, row] of rows) found.set(id, row);
    }
    return ids.map((id) => found.get(id));
  };
}

/** The prospect and what hangs on it. */
function rowsWith(companyId: number, id: number): QuerySpec {
  const { pk, sk } = keys.prospect(companyId, id);
  return { pk, begins: sk };
}

async function read(table: Table, spec: QuerySpec, consistency: Consistency): Promise<Rows> {
  const rows: Rows = new Map();
  for await (const item of table.query({ ...spec, fields, consistency })) {
    // A prospect stands before its notes.
    if (item.type === "prospect") {
      const prospect = Exported.parse(item);
      rows.set(prospect.id, { prospect, note: undefined });
    } else if (item.type === "note") {
      const note = ExportedNote.parse(item);
      const row = rows.get(note.prospectId);
      const isNewest = row?.note === undefined || newestFirst(note, row.note) < 0;
      if (row !== undefined && isNewest) rows.set(note.prospectId, { ...row, note });
    }
  }
  return rows;
}

function bytesOf(rows: Rows | undefined): number {
  let bytes = 0;
  for (const { note } of rows?.values() ?? []) bytes += ROW_BYTES + 2 * (note?.body.length ?? 0);
  return bytes;
}

async function inLanes<T, Result>(entries: readonly T[], work: (entry: T) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  async function lane(): Promise<void> {
    for (let at = next++; at < entries.length; at = next++) {
      const entry = entries[at];
      if (entry !== undefined) results.push(await work(entry));
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, lane));
  return results;
}
