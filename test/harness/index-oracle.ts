/** Checks a company's search index. It reads the whole index and all rows of prospects and notes without caches, and compares them. */
import * as z from "zod/mini";
import { readUnflushed, withTexts } from "#shared/company-index/delta.ts";
import { readManifest } from "#shared/company-index/manifest.ts";
import { readPartOverrides, readSegments } from "#shared/company-index/pieces.ts";
import { type IndexRow, isTombstone, type NoteText } from "#shared/company-index/record.ts";
import { rowsOf } from "#shared/company-index/segment.ts";
import { flushedVersions, newestUnflushed } from "#shared/company-index/versions.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { indexNote, indexRow } from "#shared/prospects/indexed.ts";
import { StoredNote, type StoredProspect, storedProspect } from "#shared/prospects/stored.ts";

const PARALLEL = 16;

const Range = z.object({ from: z.int(), to: z.int(), importId: z.optional(z.string()) });

export interface CompanyProspects {
  /** All prospects that are not deleted, in any order. */
  readonly prospects: StoredProspect[];
  /** All notes, in any order. They include the notes of deleted prospects. */
  readonly notes: readonly StoredNote[];
}

/**
 * Reads all prospects and notes of a company. Before the service writes rows with new prospect ids, it records the range of these ids. The
 * recorded ranges therefore contain the ids of all prospects.
 */
export async function readAllProspects(table: Table, companyId: number): Promise<CompanyProspects> {
  const blocks: number[] = [];
  for await (const item of table.query(keys.prospectRanges(companyId))) {
    const { from, to, importId } = Range.parse(item);
    // A range with an import id belongs to an unfinished import. Users do not see its rows yet.
    if (importId !== undefined) continue;
    for (let block = from; block <= to; block++) blocks.push(block);
  }
  const prospects: StoredProspect[] = [];
  const notes: StoredNote[] = [];

  async function readBlocks(): Promise<void> {
    for (let block = blocks.pop(); block !== undefined; block = blocks.pop()) {
      for await (const item of table.query(attachedKeys.prospectsAndNotes(companyId, block))) keep(item);
    }
  }
  function keep(item: Item): void {
    if (item.deletedAt !== undefined) return;
    if (item.type === "prospect") prospects.push(storedProspect(item));
    else if (item.type === "note") notes.push(StoredNote.parse(item));
  }
  await Promise.all(Array.from({ length: PARALLEL }, readBlocks));
  return { prospects, notes };
}

export interface Contents {
  /**
   * The rows of the search index that no newer version or deletion replaces, by the id of their prospect. Several rows with the same id are
   * a fault of the index.
   */
  readonly rows: ReadonlyMap<number, readonly IndexRow[]>;
  readonly notes: ReadonlyMap<number, readonly NoteText[]>;
}

/**
 * Reads all prospects and notes that the search index contains. Throws IndexUnreadable if a stored part of the index is missing or
 * damaged.
 */
async function readContents(table: Table, companyId: number): Promise<Contents> {
  const unflushed = await readUnflushed(table, companyId);
  const { parts } = await readManifest(table, companyId, unflushed.head.manifest);
  const partOverrides = await readPartOverrides(table, companyId, parts);
  const known = flushedVersions(partOverrides);
  const newest = newestUnflushed(known, unflushed.entries, unflushed.notes);
  const { delta, missing } = await withTexts(table, companyId, newest, known, unflushed);
  if (missing > 0) throw new Error(`${missing} unflushed entries of company ${companyId} lack texts`);
  const rows = new Map<number, IndexRow[]>();
  const notes = new Map<number, NoteText[]>();
  const keepNote = (note: NoteText, age: number): void => {
    if (known.noteVersions.supersedes(note.noteId, note.version, age) || delta.notes.has(note.noteId)) return;
    append(notes, note.noteId, note);
  };
  for (const [age, part] of parts.entries()) {
    for (const decode of await readSegments(table, companyId, part)) {
      for (const { row, notes: own } of rowsOf(decode())) {
        const isDead = known.prospectVersions.supersedes(row.id, row.version, age) || delta.prospects.has(row.id);
        if (!isDead) append(rows, row.id, row);
        for (const note of own) keepNote(note, age);
      }
    }
  }
  for (const { age, ...note } of known.looseNotes) keepNote(note, age);
  for (const entry of delta.prospects.values()) if (!isTombstone(entry)) append(rows, entry.id, entry);
  for (const { text, ...note } of delta.notes.values())
    if (text !== null) append(notes, note.noteId, { ...note, text });
  return { rows, notes };
}

function append<T>(lists: Map<number, T[]>, id: number, entry: T): void {
  const list = lists.get(id);
  if (list === undefined) lists.set(id, [entry]);
  else list.push(entry);
}

export interface IndexFault {
  readonly record: "prospect" | "note";
  readonly id: number;
  readonly fault: "missing" | "too many" | "different";
  /** The content of the record in the row of the table (`expected`), and its content in the index (`found`). */
  readonly expected?: unknown;
  readonly found?: unknown;
}

/**
 * Returns the differences between the search index and the rows of the table. The list is empty if there are none. Nobody may write to the
 * company during the check. Throws IndexUnreadable if a stored part of the index is missing or damaged.
 */
export async function checkIndex(table: Table, companyId: number): Promise<IndexFault[]> {
  const [company, contents] = await Promise.all([readAllProspects(table, companyId), readContents(table, companyId)]);
  const rows = new Map(company.prospects.map((prospect) => [prospect.id, indexRow(prospect)]));
  const texts = new Map(
    company.notes.filter(({ prospectId }) => rows.has(prospectId)).map((note) => [note.id, indexNote(note)]),
  );
  // The index may still contain notes of a deleted prospect. This is no fault, because a merge of index parts will remove them.
  const notes = new Map([...contents.notes].filter(([, [note]]) => note !== undefined && rows.has(note.prospectId)));
  return [...differences("prospect", rows, contents.rows), ...differences("note", texts, notes)];
}

function* differences<T extends IndexRow | NoteText>(
  record: IndexFault["record"],
  expected: ReadonlyMap<number, T>,
  found: ReadonlyMap<number, readonly T[]>,
): Generator<IndexFault> {
  for (const [id, entry] of expected) {
    const [first] = found.get(id) ?? [];
    if (first === undefined) yield { record, id, fault: "missing", expected: entry };
    else if (canonical(first) !== canonical(entry)) {
      yield { record, id, fault: "different", expected: entry, found: first };
    }
  }
  for (const [id, entries] of found) {
    if (entries.length > 1 || !expected.has(id)) yield { record, id, fault: "too many", found: entries };
  }
}

/** Returns a record as JSON with sorted fields. Equal records then have equal JSON, so the strings can be compared. */
const canonical = (entry: IndexRow | NoteText): string => JSON.stringify(Object.entries(entry).sort());
