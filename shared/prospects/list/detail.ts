/** Reads one prospect with what hangs on it. */

import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { besideKeys } from "#shared/db/attached-keys.ts";
import type { Item } from "#shared/db/item.ts";
import { limits } from "#shared/limits.ts";
import { StoredAppointment } from "#shared/prospects/appointment-schema.ts";
import { StoredNote } from "#shared/prospects/note-schema.ts";
import { presentDetail } from "#shared/prospects/present.ts";
import { readVisibleProspect } from "#shared/prospects/read.ts";
import type { ProspectDetail } from "#shared/prospects/schema.ts";
import { StoredStatusChange } from "#shared/prospects/stored.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";

/** One round: the row, its newest notes, and its appointments and past statuses. Throws not_found for what the caller may not see. */
export async function readProspect(context: ApiContext, caller: Caller, id: number): Promise<ProspectDetail> {
  const { companyId } = caller;
  const newest = { ...besideKeys.notes(companyId, id), newestFirst: true, limit: limits.notesInDetail };
  const [prospect, notes, details, dictionary] = await Promise.all([
    readVisibleProspect(context, caller, id),
    itemsOf(context.table.query(newest)),
    itemsOf(context.table.query(besideKeys.details(companyId, id))),
    loadDictionary(context.table, companyId),
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
