/** Reads one prospect with what hangs on it. */
import { StoredAppointment } from "#shared/appointments/schema.ts";
import type { Caller } from "#shared/auth/caller.ts";
import { loadDictionary } from "#shared/companies/dictionary.ts";
import { besideKeys } from "#shared/db/beside-keys.ts";
import type { Item } from "#shared/db/table.ts";
import { limits } from "#shared/limits.ts";
import { StoredNote } from "#shared/notes/schema.ts";
import { presentDetail } from "#shared/prospects/present.ts";
import { readVisibleProspect } from "#shared/prospects/read.ts";
import type { ProspectDetail } from "#shared/prospects/schema.ts";
import { StoredStatusChange } from "#shared/prospects/stored.ts";
import type { World } from "#shared/world.ts";

/** One round: the row, its newest notes, and its appointments and past statuses. Throws not_found for what the caller may not see. */
export async function readProspect(world: World, caller: Caller, id: number): Promise<ProspectDetail> {
  const { companyId } = caller;
  const newest = { ...besideKeys.notes(companyId, id), newestFirst: true, limit: limits.notesInDetail };
  const [prospect, notes, details, dictionary] = await Promise.all([
    readVisibleProspect(world, caller, id),
    itemsOf(world.table.query(newest)),
    itemsOf(world.table.query(besideKeys.details(companyId, id))),
    loadDictionary(world.table, companyId),
  ]);
  const rows = {
    prospect,
    notes: notes.map((item) => StoredNote.parse(item)),
    appointments: ofType(details, "appointment").map((item) => StoredAppointment.parse(item)),
    history: ofType(details, "history").map((item) => StoredStatusChange.parse(item)),
  };
  return presentDetail(rows, dictionary);
}

async function itemsOf(query: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = [];
  for await (const item of query) items.push(item);
  return items;
}

const ofType = (items: readonly Item[], wanted: string): Item[] => items.filter(({ type }) => type === wanted);
