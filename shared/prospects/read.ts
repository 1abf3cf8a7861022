/** Reads one prospect, as far as the caller may see it. */
import type { Caller } from "#shared/auth/caller.ts";
import { loadDictionary } from "#shared/companies/dictionary.ts";
import { keys } from "#shared/db/keys.ts";
import type { Item } from "#shared/db/table.ts";
import { notFound } from "#shared/http/problem.ts";
import { isPublished } from "#shared/imports/published.ts";
import { gatherRows, type ProspectRows, presentDetail } from "#shared/prospects/present.ts";
import type { ProspectDetail } from "#shared/prospects/schema.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";
import { isVisible } from "#shared/prospects/visibility.ts";
import type { World } from "#shared/world.ts";

/** The prospect with its notes, appointments and history: one Query. Throws not_found for what the caller may not see. */
export async function readProspectRows({ table }: World, caller: Caller, id: number): Promise<ProspectRows> {
  const { pk, sk } = keys.prospect(caller.companyId, id);
  const items: Item[] = [];
  for await (const item of table.query({ pk, begins: sk })) items.push(item);
  const rows = gatherRows(items);
  if (rows === undefined || !isVisible(caller, rows.prospect)) throw notFound("prospect");
  if (!(await isPublished(table, caller.companyId, rows.prospect.importId))) throw notFound("prospect");
  return rows;
}

/** The prospect's row alone. Throws not_found for what the caller may not see. */
export async function readVisibleProspect({ table }: World, caller: Caller, id: number): Promise<StoredProspect> {
  const item = await table.get(keys.prospect(caller.companyId, id));
  const prospect = item === undefined ? undefined : StoredProspect.parse(item);
  if (prospect === undefined || !isVisible(caller, prospect)) throw notFound("prospect");
  if (!(await isPublished(table, caller.companyId, prospect.importId))) throw notFound("prospect");
  return prospect;
}

export async function readProspect(world: World, caller: Caller, id: number): Promise<ProspectDetail> {
  const [rows, dictionary] = await Promise.all([
    readProspectRows(world, caller, id),
    loadDictionary(world.table, caller.companyId),
  ]);
  return presentDetail(rows, dictionary);
}
