/**
 * Brings the notes of a restored prospect back into the search index. A merge of the index removes the notes of deleted prospects, so the
 * index may have lost them.
 */
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Write } from "#shared/db/expression.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { replaceNote } from "#shared/prospects/rows.ts";
import { StoredNote } from "#shared/prospects/stored.ts";

/** Number of notes in a transaction. 33, because each note has at most three writes, and DynamoDB accepts 100 in a transaction. */
const NOTES_AT_ONCE = 33;

/**
 * Writes all notes of the prospect in new versions, with the same contents. Call this after the prospect was restored. A repeated call does
 * no harm. If the notes were written before the prospect is restored, a merge of the index could remove them again.
 */
export async function indexNotesAgain(table: Table, companyId: number, prospectId: number): Promise<void> {
  let notes: StoredNote[] = [];
  for await (const item of table.query(attachedKeys.notes(companyId, prospectId))) {
    notes.push(StoredNote.parse(item));
    if (notes.length < NOTES_AT_ONCE) continue;
    await replaceAll(table, notes);
    notes = [];
  }
  await replaceAll(table, notes);
}

const replaced = (note: StoredNote): Write[] => replaceNote(note, { ...note, version: note.version + 1 });

/**
 * Writes the notes in one transaction. If a user has changed one of them at the same time, the notes are written one by one. The changed
 * ones are left out, because the user's write brings them into the index.
 */
async function replaceAll(table: Table, notes: readonly StoredNote[]): Promise<void> {
  if (notes.length === 0) return;
  try {
    await table.transact(notes.flatMap(replaced));
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    for (const note of notes) await table.transact(replaced(note)).catch(ignoreChanged);
  }
}

function ignoreChanged(error: unknown): void {
  if (!(error instanceof ConditionFailed)) throw error;
}
