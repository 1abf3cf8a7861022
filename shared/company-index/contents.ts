/** Everything that a company's index says, piece by piece: for checks, which trust no cache and no zone map. */

import { readUnflushed } from "#shared/company-index/delta.ts";
import { withTexts } from "#shared/company-index/override-texts.ts";
import { type IndexRow, isTombstone, type NoteText } from "#shared/company-index/row.ts";
import { rowsOf } from "#shared/company-index/rows.ts";
import { readAsides, readSegments } from "#shared/company-index/run-pieces.ts";
import { readManifest } from "#shared/company-index/store.ts";
import { newestUnflushed, runsInView } from "#shared/company-index/view.ts";
import type { Table } from "#shared/db/table.ts";

export interface Contents {
  /** Live rows by prospect; more than one is a fault. */
  readonly rows: ReadonlyMap<number, readonly IndexRow[]>;
  /** Live notes by note; more than one is a fault. */
  readonly notes: ReadonlyMap<number, readonly NoteText[]>;
}

/** Throws IndexUnreadable where a piece is missing or damaged. */
export async function readContents(table: Table, companyId: number): Promise<Contents> {
  const unflushed = await readUnflushed(table, companyId);
  const { runs } = await readManifest(table, companyId, unflushed.head.manifest);
  const asides = await readAsides(table, companyId, runs);
  const known = runsInView(asides);
  const newest = newestUnflushed(known, unflushed.entries, unflushed.notes);
  const { delta, missing } = await withTexts(table, companyId, newest, known, unflushed.aside);
  if (missing > 0) throw new Error(`${missing} unflushed entries of company ${companyId} lack texts`);
  const rows = new Map<number, IndexRow[]>();
  const notes = new Map<number, NoteText[]>();
  const keepNote = (note: NoteText, age: number): void => {
    if (known.noteVersions.supersedes(note.noteId, note.version, age) || delta.notes.has(note.noteId)) return;
    append(notes, note.noteId, note);
  };
  for (const [age, run] of runs.entries()) {
    for (const decode of await readSegments(table, companyId, run)) {
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
