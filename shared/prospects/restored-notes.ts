/** Brings the notes of a restored prospect back into the index, from which a merge removes the notes of deleted prospects. */
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Write } from "#shared/db/expression.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { replaceNote } from "#shared/prospects/rows.ts";
import { StoredNote } from "#shared/prospects/stored.ts";

/** Each note has at most three writes, and DynamoDB accepts 100 in a transaction. */
const NOTES_AT_ONCE = 33;

/**
 * Writes all notes in new versions. Call it after the restore, because a merge could otherwise remove them again. A repeated call does no
 * harm.
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

/** Writes the notes in one transaction, or one by one if a user has changed one. That user's write brings it into the index. */
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
