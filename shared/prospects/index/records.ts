/** Reads the rows from which a company index is built, in blocks, so that the memory does not grow with the company. */
import type { NoteRef, Records, SomeRecords } from "#shared/company-index/record.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { indexEntry, indexNote } from "#shared/prospects/indexed.ts";
import { publishedBlocks } from "#shared/prospects/read.ts";
import { findNoteLocators } from "#shared/prospects/rows.ts";
import { StoredNote, storedProspect } from "#shared/prospects/stored.ts";

const PARALLEL = 8;

export const indexRecords = (table: Table): Records => ({
  readAll: (companyId) => readAll(table, companyId),
  readSome: (companyId, prospects, notes) => readSome(table, companyId, prospects, notes),
});

async function* readAll(table: Table, companyId: number): AsyncGenerator<SomeRecords> {
  const underWay: Promise<SomeRecords>[] = [];
  for (const block of await publishedBlocks(table, keys.prospectRanges(companyId))) {
    const read = readBlock(table, companyId, block);
    // An unhandled rejection would end the process. The `await` below still throws.
    read.catch(() => undefined);
    underWay.push(read);
    const first = underWay.length < PARALLEL ? undefined : underWay.shift();
    if (first !== undefined) yield await first;
  }
  for (const read of underWay) yield await read;
}

const readBlock = async (table: Table, companyId: number, block: number): Promise<SomeRecords> =>
  recordsIn(await Array.fromAsync(table.query(attachedKeys.prospectsAndNotes(companyId, block))));

async function readSome(
  table: Table,
  companyId: number,
  prospectIds: readonly number[],
  noteLocators: readonly NoteRef[],
): Promise<SomeRecords> {
  const noteIds = noteLocators.map(({ noteId }) => noteId);
  const spots = noteIds.length === 0 ? [] : await findNoteLocators(table, companyId, noteIds);
  const wanted = [
    ...prospectIds.map((id) => keys.prospect(companyId, id)),
    ...[...spots].map(([id, { prospectId, createdAt }]) => attachedKeys.note(companyId, prospectId, createdAt, id)),
  ];
  return recordsIn(await table.batchGet(distinct(wanted)));
}

const recordsIn = (items: readonly Item[]): SomeRecords => ({
  prospects: items.flatMap((item) => (item.type === "prospect" ? [indexEntry(storedProspect(item))] : [])),
  notes: items.flatMap((item) => (item.type === "note" ? [indexNote(StoredNote.parse(item))] : [])),
});

/** Returns each key once, because DynamoDB rejects a batch with equal keys. */
const distinct = (all: readonly keys.Key[]): keys.Key[] => [
  ...new Map(all.map((key) => [`${key.pk}|${key.sk}`, key])).values(),
];
