/** The rows that the company index is made of, read block by block: as many prospects as there may be, a few blocks in memory. */
import * as z from "zod/mini";
import type { NoteRef, Records, SomeRecords } from "#shared/company-index/record.ts";
import { besideKeys } from "#shared/db/attached-keys.ts";
import type { Item } from "#shared/db/item.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { indexEntry, indexNote } from "#shared/prospects/indexed.ts";
import { findNotePlaces } from "#shared/prospects/rows.ts";
import { StoredNote, StoredProspect } from "#shared/prospects/stored.ts";

/** Blocks that are read at once. */
const PARALLEL = 8;

const Range = z.object({ from: z.int(), to: z.int(), importId: z.optional(z.string()) });

export const indexRecords = (table: Table): Records => ({
  readAll: (companyId) => readAll(table, companyId),
  readSome: (companyId, prospects, notes) => readSome(table, companyId, prospects, notes),
});

/** A prospect's range is recorded before its row is written, so no row is missed that stood when this began. */
async function* readAll(table: Table, companyId: number): AsyncGenerator<SomeRecords> {
  const ranges: z.infer<typeof Range>[] = [];
  for await (const item of table.query(keys.prospectRanges(companyId))) {
    const range = Range.parse(item);
    // Of an import that is not completed: nothing of it is there yet.
    if (range.importId === undefined) ranges.push(range);
  }
  const underWay: Promise<SomeRecords>[] = [];
  for (const { from, to } of ranges) {
    for (let block = from; block <= to; block++) {
      const read = readBlock(table, companyId, block);
      // Told when its turn comes; until then it must not end the process.
      read.catch(() => undefined);
      underWay.push(read);
      const first = underWay.length < PARALLEL ? undefined : underWay.shift();
      if (first !== undefined) yield await first;
    }
  }
  for (const read of underWay) yield await read;
}

async function readBlock(table: Table, companyId: number, block: number): Promise<SomeRecords> {
  const items: Item[] = [];
  for await (const item of table.query(besideKeys.prospectsAndNotes(companyId, block))) items.push(item);
  return recordsIn(items);
}

async function readSome(
  table: Table,
  companyId: number,
  prospectIds: readonly number[],
  notePlaces: readonly NoteRef[],
): Promise<SomeRecords> {
  const noteIds = notePlaces.map(({ noteId }) => noteId);
  const spots = noteIds.length === 0 ? [] : await findNotePlaces(table, companyId, noteIds);
  const wanted = [
    ...prospectIds.map((id) => keys.prospect(companyId, id)),
    ...[...spots].map(([id, { prospectId, createdAt }]) => besideKeys.note(companyId, prospectId, createdAt, id)),
  ];
  return recordsIn(await table.batchGet(distinct(wanted)));
}

const recordsIn = (items: readonly Item[]): SomeRecords => ({
  prospects: items.flatMap((item) => (item.type === "prospect" ? [indexEntry(StoredProspect.parse(item))] : [])),
  notes: items.flatMap((item) => (item.type === "note" ? [indexNote(StoredNote.parse(item))] : [])),
});

/** DynamoDB refuses a batch that names a key twice. */
const distinct = (all: readonly Key[]): Key[] => [...new Map(all.map((key) => [`${key.pk}|${key.sk}`, key])).values()];
