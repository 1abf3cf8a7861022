/** Lists the addresses that the caller may see, sorted by id. */
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import { assigneesOf } from "#shared/company-index/search/match.ts";
import type { ReadContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import * as limits from "#shared/limits.ts";
import type { Address } from "#shared/prospects/address.ts";
import type { AddressQuery } from "#shared/prospects/address-input.ts";
import { isPack, StoredAddress, unpackAddresses } from "#shared/prospects/address-rows.ts";
import { allowsAddress, type Holder, presentAddress } from "#shared/prospects/addresses.ts";
import { findProspects } from "#shared/prospects/find.ts";
import { publishedBlocks } from "#shared/prospects/read.ts";
import { storedProspect } from "#shared/prospects/stored.ts";

/** Four full blocks contain a page of `limits.pageSizeMax` addresses. */
const BLOCKS_AT_ONCE = 4;
const MOST_BLOCKS_AT_ONCE = 32;

/**
 * Reads the blocks of ids that the company has reserved for addresses, because the table has no list of addresses. A request reads a
 * limited number of blocks, so the page of a user who sees few addresses may be short. The returned `after` is the last checked id, or
 * undefined if there are no more addresses.
 */
export async function listAddresses(
  context: ReadContext,
  caller: Caller,
  { after, limit }: AddressQuery,
): Promise<{ addresses: Address[]; after: number | undefined }> {
  const { table } = context;
  const { companyId } = caller;
  const first = Math.floor((after + 1) / keys.IDS_PER_PARTITION);
  const blocks = (await publishedBlocks(table, keys.addressRanges(companyId))).filter((block) => block >= first);
  const isRestricted = visibleAssignee(caller) !== undefined;
  const allowed = isRestricted ? limits.addressesLookedThrough / keys.IDS_PER_PARTITION : blocks.length;
  const addresses: StoredAddress[] = [];
  let [next, atOnce] = [0, BLOCKS_AT_ONCE];
  while (next < Math.min(blocks.length, allowed) && addresses.length < limit) {
    const some = blocks.slice(next, Math.min(next + atOnce, allowed));
    const read = await Promise.all(some.map((block) => readBlock(table, companyId, block)));
    const found = read.flat().filter(({ id }) => id > after);
    addresses.push(...(isRestricted ? await visibleOf(context, caller, found) : found));
    next += some.length;
    // A user who sees few addresses of each block needs many blocks, so each step reads twice as many as the one before.
    if (isRestricted) atOnce = Math.min(2 * atOnce, MOST_BLOCKS_AT_ONCE);
  }
  const shown = addresses.slice(0, limit);
  const isCut = shown.length < addresses.length || next < blocks.length;
  const passed = shown.length < limit ? lastOf(blocks[next - 1]) : shown.at(-1)?.id;
  return { addresses: shown.map(presentAddress), after: isCut ? passed : undefined };
}

const lastOf = (block: number | undefined): number | undefined =>
  block === undefined ? undefined : (block + 1) * keys.IDS_PER_PARTITION - 1;

/** Finds the assignees of holders in the company index. A holder that the index lacks is deleted or being written, so its row is read. */
async function visibleOf(
  context: ReadContext,
  caller: Caller,
  found: readonly StoredAddress[],
): Promise<StoredAddress[]> {
  const linked = new Set(found.flatMap(({ prospectIds = new Set<number>() }) => [...prospectIds]));
  if (linked.size === 0) return [...found];
  const { matches } = await findProspects(context, caller.companyId, () => ({ words: [] }));
  const assignees = assigneesOf(matches, linked);
  const others = [...linked].filter((id) => !assignees.has(id));
  const items = await context.table.batchGet(others.map((id) => keys.prospect(caller.companyId, id)));
  const rows = new Map(items.map(storedProspect).map((row) => [row.id, row]));
  const holdersOf = ({ id, prospectIds = new Set<number>() }: StoredAddress): Holder[] =>
    [...prospectIds].flatMap((prospectId): Holder[] => {
      const assignedToUserId = assignees.get(prospectId);
      if (assignedToUserId !== undefined) return [{ assignedToUserId }];
      const row = rows.get(prospectId);
      return row?.address?.id === id ? [row] : [];
    });
  return found.filter((address) => allowsAddress(caller, holdersOf(address)));
}

/** If an address is in the packed row and in a row of its own, the latter is newer. */
async function readBlock(table: Reads, companyId: number, block: number): Promise<StoredAddress[]> {
  const items = await Array.fromAsync(table.query(keys.addressBlock(companyId, block)));
  const packed = items.filter(isPack).flatMap((pack) => unpackAddresses(pack).addresses);
  const own = items.filter((item) => !isPack(item)).map((item) => StoredAddress.parse(item));
  const addresses = new Map([...packed, ...own].map((address) => [address.id, address]));
  return [...addresses.values()].sort((a, b) => a.id - b.id);
}
