/** The visibility rule for addresses: who may not see all of a company sees those that belong to nobody, or to a prospect in sight. */

import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { notFound } from "#shared/errors.ts";
import type { Address, StoredAddress } from "#shared/prospects/address-schema.ts";
import { presentAddress, readAddress } from "#shared/prospects/addresses.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";
import { isVisible } from "#shared/prospects/visibility.ts";

/** Prospects that are looked at together: mostly the first ones tell. */
const TOGETHER = 100;

export async function getAddress(context: ApiContext, caller: Caller, id: number): Promise<Address> {
  const stored = await readAddress(context, caller.companyId, id);
  if (!(await seesAddress(context.table, caller, stored))) throw notFound("address");
  return presentAddress(stored);
}

export async function seesAddress(table: Table, caller: Caller, stored: StoredAddress): Promise<boolean> {
  if (visibleAssignee(caller) === undefined) return true;
  const linked = [...(stored.prospectIds ?? [])];
  let isSomebodys = false;
  for (let at = 0; at < linked.length; at += TOGETHER) {
    const holders = await holdersAmong(table, stored, linked.slice(at, at + TOGETHER));
    if (holders.some((prospect) => isVisible(caller, prospect))) return true;
    isSomebodys ||= holders.length > 0;
  }
  return !isSomebodys;
}

/** Those that are there and hold a copy. */
export const holdersOf = (table: Table, stored: StoredAddress): Promise<StoredProspect[]> =>
  holdersAmong(table, stored, [...(stored.prospectIds ?? [])]);

async function holdersAmong(
  table: Table,
  { companyId, id }: StoredAddress,
  prospectIds: readonly number[],
): Promise<StoredProspect[]> {
  const items = await table.batchGet(prospectIds.map((prospectId) => keys.prospect(companyId, prospectId)));
  return items
    .map((item) => StoredProspect.parse(item))
    .filter((prospect) => prospect.deletedAt === undefined && prospect.address?.id === id);
}
