/** Reads every prospect of a company from its rows: exact, strongly consistent, and as dear as the company is large. */

import * as z from "zod/mini";
import { StoredAppointment } from "#shared/appointments/schema.ts";
import { keys } from "#shared/db/keys.ts";
import type { Item, Table } from "#shared/db/table.ts";
import { StoredNote } from "#shared/notes/schema.ts";
import type { ProspectPredicate } from "#shared/prospects/filter.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";

/** Partitions read at once. */
const PARALLEL = 16;

const Range = z.object({ from: z.int(), to: z.int(), importId: z.optional(z.string()) });

export interface CompanyProspects {
  /** Those that are not deleted, in no order. */
  readonly prospects: StoredProspect[];
  readonly appointmentsOf: ReadonlyMap<number, StoredAppointment[]>;
  /** The texts of each prospect's notes. */
  readonly notesOf: ReadonlyMap<number, string[]>;
  /** All notes, in no order, those of deleted prospects included. */
  readonly notes: readonly StoredNote[];
}

/** The prospects that pass a filter, in no order. */
export function matching({ prospects, notesOf }: CompanyProspects, passes: ProspectPredicate): StoredProspect[] {
  return prospects.filter((prospect) => passes(prospect, notesOf.get(prospect.id) ?? []));
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
  const appointmentsOf = new Map<number, StoredAppointment[]>();
  const notesOf = new Map<number, string[]>();
  const notes: StoredNote[] = [];

  async function readBlocks(): Promise<void> {
    for (let block = blocks.pop(); block !== undefined; block = blocks.pop()) {
      for await (const item of table.query(keys.prospectBlock(companyId, block))) keep(item);
    }
  }
  function keep(item: Item): void {
    if (item.deletedAt !== undefined) return;
    if (item.type === "prospect") prospects.push(StoredProspect.parse(item));
    else if (item.type === "appointment") {
      const appointment = StoredAppointment.parse(item);
      append(appointmentsOf, appointment.prospectId, appointment);
    } else if (item.type === "note") {
      const note = StoredNote.parse(item);
      notes.push(note);
      append(notesOf, note.prospectId, note.body);
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, readBlocks));
  return { prospects, appointmentsOf, notesOf, notes };
}

function append<T>(lists: Map<number, T[]>, id: number, entry: T): void {
  const list = lists.get(id);
  if (list === undefined) lists.set(id, [entry]);
  else list.push(entry);
}
