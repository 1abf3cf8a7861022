/**
 * Adds prospects as an import does. At first, the row of their id range names an import, so that rebuilds ignore them. At the end, one
 * transaction adds all of them to the index, and one entry for them to the change log.
 */
import type { Caller } from "#shared/auth/caller.ts";
import { addRows } from "#shared/company-index/write/publish.ts";
import type { ApiContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { indexNote, indexRow } from "#shared/prospects/indexed.ts";
import { noteLocatorWrite } from "#shared/prospects/rows.ts";
import { prospectItem, type StoredNote } from "#shared/prospects/stored.ts";
import { prospectRow } from "../harness/prospect-row.ts";

/** The tests store no row for this import. The service then treats it as completed. */
const IMPORT_ID = "7";

/** Adds one prospect for each assignee. Every second prospect has a note. */
export async function importProspects(
  context: ApiContext,
  { companyId, userId }: Caller,
  assignees: readonly (number | null)[],
) {
  const now = new Date(context.clock.now()).toISOString();
  const dated = { createdAt: now, updatedAt: now };
  const first = await context.ids.takeForImport("prospect", companyId, assignees.length, "import");
  const prospects = assignees.map((assignedToUserId, i) => {
    const id = first + i;
    return prospectRow({ companyId, id, name: `imported ${id}`, assignedToUserId, importId: IMPORT_ID, ...dated });
  });
  const notes = await Promise.all(
    prospects
      .filter((_, i) => i % 2 === 1)
      .map(async ({ id: prospectId }): Promise<StoredNote> => {
        const id = await context.ids.next();
        return { type: "note", id, companyId, prospectId, body: `of ${id}`, ...dated, createdBy: userId, version: 1 };
      }),
  );
  await context.table.batchPut([
    ...prospects.map((row) => ({ ...keys.prospect(companyId, row.id), ...prospectItem(row) })),
    ...notes.map((note) => ({ ...attachedKeys.note(companyId, note.prospectId, note.createdAt, note.id), ...note })),
  ]);
  for (const note of notes) await context.table.transact([noteLocatorWrite(note)]);
  const indexed = prospects.map((row) => ({
    row: indexRow(row),
    notes: notes.filter(({ prospectId }) => prospectId === row.id).map(indexNote),
  }));
  const unmarked: Write = {
    update: keys.prospectRange(companyId, keys.blockOf(first)),
    change: { remove: ["importId"] },
  };
  await addRows(context, companyId, indexed, undefined, (moves) => context.table.transact([...moves, unmarked]));
  return { prospects, notes };
}
