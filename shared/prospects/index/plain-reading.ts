/** Reads every prospect of a company from its rows: exact, strongly consistent, and as dear as the company is large. */

import * as z from "zod/mini";
import { besideKeys } from "#shared/db/attached-keys.ts";
import type { Item } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { StoredNote, StoredProspect } from "#shared/prospects/stored.ts";

/** Partitions read at once. */
const PARALLEL = 16;

const Range = z.object({ from: z.int(), to: z.int(), importId: z.optional(z.string()) });

export interface CompanyProspects {
  /** Those that are not deleted, in no order. */
  readonly prospects: StoredProspect[];
  /** All notes, in no order, those of deleted prospects included. */
  readonly notes: readonly StoredNote[];
}

/** A prospect's range is recorded before its row is written, so no row is missed. */
export async function readAllProspects(table: Table, companyId: number): Promise<CompanyProspects> {
  const blocks: number[] = [];
  for await (const item of table.query(keys.prospectRanges(companyId))) {
    const { from, to, importId } = Range.parse(item);
    // Of an import that is not completed: nothing of it is there yet.
    if (importId !== undefined) continue;
    for (let block = from; block <= to; block++) blocks.push(block);
  }
  const prospects: StoredProspect[] = [];
  const notes: StoredNote[] = [];

  async function readBlocks(): Promise<void> {
    for (let block = blocks.pop(); block !== undefined; block = blocks.pop()) {
      for await (const item of table.query(besideKeys.prospectsAndNotes(companyId, block))) keep(item);
    }
  }
  function keep(item: Item): void {
    if (item.deletedAt !== undefined) return;
    if (item.type === "prospect") prospects.push(StoredProspect.parse(item));
    else if (item.type === "note") notes.push(StoredNote.parse(item));
  }
  await Promise.all(Array.from({ length: PARALLEL }, readBlocks));
  return { prospects, notes };
}
