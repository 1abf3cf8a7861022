/** Compares a company's index with its records, one by one. */
import { readContents } from "#shared/company-index/contents.ts";
import type { IndexRow, NoteText } from "#shared/company-index/row.ts";
import type { Table } from "#shared/db/table.ts";
import { readAllProspects } from "#shared/prospects/index/plain-reading.ts";
import { indexNote, indexRow } from "#shared/prospects/indexed.ts";

export interface IndexFault {
  readonly record: "prospect" | "note";
  readonly id: number;
  readonly fault: "missing" | "too many" | "different";
}

/** Empty when the index says exactly what the records say. Nothing may be written meanwhile. Throws IndexUnreadable. */
export async function checkIndex(table: Table, companyId: number): Promise<IndexFault[]> {
  const [company, contents] = await Promise.all([readAllProspects(table, companyId), readContents(table, companyId)]);
  const rows = new Map(company.prospects.map((prospect) => [prospect.id, indexRow(prospect)]));
  const texts = new Map(
    company.notes.filter(({ prospectId }) => rows.has(prospectId)).map((note) => [note.id, indexNote(note)]),
  );
  // A deleted prospect takes its notes along, at the latest when its runs are merged.
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
    if (first === undefined) yield { record, id, fault: "missing" };
    else if (canonical(first) !== canonical(entry)) yield { record, id, fault: "different" };
  }
  for (const [id, entries] of found) {
    if (entries.length > 1 || !expected.has(id)) yield { record, id, fault: "too many" };
  }
}

/** Equal text for equal content: fields in one order. */
const canonical = (entry: IndexRow | NoteText): string => JSON.stringify(Object.entries(entry).sort());
