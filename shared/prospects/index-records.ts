/** The rows that the company index is made of, read block by block: as many prospects as there may be, a few blocks in memory. */
import * as z from "zod/mini";
import type { NotePlace, Records, SomeRecords, VersionsNow } from "#shared/company-index/records.ts";
import type { IndexEntry, NoteText } from "#shared/company-index/row.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { StoredNote } from "#shared/notes/schema.ts";
import { indexEntry, indexNote } from "#shared/prospects/indexed.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";

/** Blocks that are read at once. */
const PARALLEL = 8;

const Range = z.object({ from: z.int(), to: z.int() });
const Row = z.discriminatedUnion("type", [
  z.pick(StoredProspect, { type: true, id: true, version: true }),
  z.pick(StoredNote, { type: true, id: true, version: true }),
]);

export const indexRecords = (table: Table): Records => ({
  readAll: (companyId) => readAll(table, companyId),
  versionsNow: (companyId, prospects, notes) => versionsNow(table, companyId, prospects, notes),
});

/** A prospect's range is recorded before its row is written, so no row is missed that stood when this began. */
async function* readAll(table: Table, companyId: number): AsyncGenerator<SomeRecords> {
  const ranges: z.infer<typeof Range>[] = [];
  for await (const item of table.query(keys.prospectRanges(companyId))) ranges.push(Range.parse(item));
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
  const prospects: IndexEntry[] = [];
  const notes: NoteText[] = [];
  for await (const item of table.query(keys.prospectBlock(companyId, block))) {
    if (item.type === "prospect") prospects.push(indexEntry(StoredProspect.parse(item)));
    else if (item.type === "note") notes.push(indexNote(StoredNote.parse(item)));
  }
  return { prospects, notes };
}

async function versionsNow(
  table: Table,
  companyId: number,
  prospectIds: readonly number[],
  notePlaces: readonly NotePlace[],
): Promise<VersionsNow> {
  const versions = { prospect: new Map<number, number>(), note: new Map<number, number>() };
  const wanted = [
    ...prospectIds.map((id) => keys.prospect(companyId, id)),
    ...notePlaces.map(({ prospectId, noteId }) => keys.note(companyId, prospectId, noteId)),
  ];
  for (const item of await table.batchGet(distinct(wanted))) {
    const { type, id, version } = Row.parse(item);
    versions[type].set(id, version);
  }
  return { prospects: versions.prospect, notes: versions.note };
}

/** DynamoDB refuses a batch that names a key twice. */
const distinct = (all: readonly Key[]): Key[] => [...new Map(all.map((key) => [`${key.pk}|${key.sk}`, key])).values()];
