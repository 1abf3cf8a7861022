/**
 * Creates, finds and changes addresses, and connects prospects with them. The row of an address lists its holders, the prospects with a
 * copy of the address. A rep sees an address without holders, or with a holder that is assigned to the rep. Deleted holders count only if
 * all holders are deleted.
 */
import { isDeepStrictEqual } from "node:util";
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, all, equals, present, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { optimistic, type Plan } from "#shared/db/plan.ts";
import type { Table } from "#shared/db/table.ts";
import { ApiError, existing, notFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { withPatch } from "#shared/patch.ts";
import { Address } from "#shared/prospects/address.ts";
import { type AddressPatch, addressFrom, type NewAddress } from "#shared/prospects/address-input.ts";
import { isPack, StoredAddress, unpackAddresses } from "#shared/prospects/address-rows.ts";
import { isInScope, isPublished, isVisible } from "#shared/prospects/read.ts";
import { replaceProspect } from "#shared/prospects/rows.ts";
import { type StoredProspect, storedProspect } from "#shared/prospects/stored.ts";

/** `prospectId` is the first holder of the address. */
export function newAddressWrite(companyId: number, address: Address, now: string, prospectId?: number): Write {
  const stored: StoredAddress = {
    ...address,
    type: "address",
    companyId,
    version: 1,
    links: 0,
    ...(prospectId !== undefined && { prospectIds: new Set([prospectId]), links: 1 }),
    createdAt: now,
    updatedAt: now,
  };
  return { put: { ...keys.address(companyId, address.id), ...stored }, when: absent };
}

/** Returns the write that adds a holder. It fails if the address has changed since the read. Throws `conflict` for too many holders. */
export function linkWrite(stored: StoredAddress, prospectId: number): Write {
  const { companyId, id, version, links, prospectIds } = stored;
  if (prospectIds !== undefined && prospectIds.size >= limits.prospectsPerAddress && !prospectIds.has(prospectId)) {
    throw new ApiError("conflict", `At most ${limits.prospectsPerAddress} prospects may share an address.`);
  }
  if (stored.isPacked) {
    return firstRow({ ...stored, prospectIds: new Set([...(prospectIds ?? []), prospectId]), links: links + 1 });
  }
  return {
    update: keys.address(companyId, id),
    change: { add: { prospectIds: new Set([prospectId]), links: 1 } },
    when: equals("version", version),
  };
}

/** Removes a holder. Increases `links`, so that a concurrent change of the address fails and is repeated. */
export function unlinkWrite(stored: StoredAddress, prospectId: number): Write {
  const { prospectIds: _, ...others } = stored;
  // The only holder of a packed address is the prospect that is removed here, so the first row of its own lists no holders.
  if (stored.isPacked) return firstRow({ ...others, links: stored.links + 1 });
  return {
    update: keys.address(stored.companyId, stored.id),
    change: { add: { links: 1 }, drop: { prospectIds: new Set([prospectId]) } },
    when: present,
  };
}

/** Writes the first own row of an address that an import has packed. Fails if a concurrent request has written this row. */
function firstRow({ isPacked: _, ...address }: StoredAddress): Write {
  return { put: { ...keys.address(address.companyId, address.id), ...address }, when: absent };
}

export async function findAddress(
  { table }: ApiContext,
  companyId: number,
  id: number,
): Promise<StoredAddress | undefined> {
  const items = await table.batchGet([keys.address(companyId, id), keys.addressPack(companyId, keys.blockOf(id))]);
  const own = items.find((item) => !isPack(item));
  if (own !== undefined) return StoredAddress.parse(own);
  const [pack] = items;
  if (pack === undefined) return undefined;
  const { importId, addresses } = unpackAddresses(pack);
  const found = addresses.find((address) => address.id === id);
  return found !== undefined && (await isPublished(table, companyId, importId)) ? found : undefined;
}

/** Returns the address in the form that the API shows and that the rows of prospects copy. */
export const presentAddress = (stored: StoredAddress): Address => Address.parse(stored);

/** Throws `not_found` if the address does not exist or the caller may not see it. */
export async function getAddress(context: ApiContext, caller: Caller, id: number): Promise<Address> {
  return presentAddress(existing(await findVisibleAddress(context, caller, id), "address"));
}

export async function findVisibleAddress(
  context: ApiContext,
  caller: Caller,
  id: number,
): Promise<StoredAddress | undefined> {
  const { companyId } = caller;
  const stored = await findAddress(context, companyId, id);
  if (visibleAssignee(caller) === undefined) return stored;
  const { live, deleted } = await holdersOf(context.table, stored ?? nobodys(companyId, id));
  return allowsAddress(caller, [...live, ...deleted]) ? stored : undefined;
}

type Held = Pick<StoredAddress, "companyId" | "id" | "prospectIds">;

/** Stands for a missing address. Its holder 0 is read too, so a request takes as long as for an address that the caller may not see. */
const nobodys = (companyId: number, id: number): Held => ({ companyId, id, prospectIds: new Set([0]) });

export async function createAddress(context: ApiContext, companyId: number, input: NewAddress): Promise<Plan<Address>> {
  const address = addressFrom(await context.ids.nextAddress(companyId), input);
  return { writes: [newAddressWrite(companyId, address, iso(context.clock.now()))], answer: address };
}

interface Holders {
  readonly live: readonly StoredProspect[];
  readonly deleted: readonly StoredProspect[];
}

/** The fields of a holder that decide who may see the address. */
export type Holder = Pick<StoredProspect, "assignedToUserId" | "deletedAt">;

export function allowsAddress(caller: Caller, holders: readonly Holder[]): boolean {
  const live = holders.filter(({ deletedAt }) => deletedAt === undefined);
  const deciding = live.length > 0 ? live : holders;
  return deciding.length === 0 || deciding.some((holder) => isInScope(caller, holder));
}

async function holdersOf(table: Table, { companyId, id, prospectIds = new Set() }: Held): Promise<Holders> {
  const items = await table.batchGet([...prospectIds].map((prospectId) => keys.prospect(companyId, prospectId)));
  const holders = items.map(storedProspect).filter(({ address }) => address?.id === id);
  const { live = [], deleted = [] } = Object.groupBy(holders, ({ deletedAt }) =>
    deletedAt === undefined ? "live" : "deleted",
  );
  return { live, deleted };
}

/**
 * Changes an address and its copies in the rows of prospects. Throws `not_found` unless the caller sees the address and all its holders
 * that are not deleted. If there are more than `limits.prospectsChangedAtOnce` copies, later transactions change them, and until then the
 * address has the mark `isSpreading`. After an interruption, the next PATCH of the address, even an empty one, changes the remaining
 * copies.
 */
export async function updateAddress(
  context: ApiContext,
  caller: Caller,
  id: number,
  patch: AddressPatch,
): Promise<Plan<Address>> {
  const { companyId } = caller;
  const stored = await findAddress(context, companyId, id);
  const holders = await holdersOf(context.table, stored ?? nobodys(companyId, id));
  const { live, deleted } = holders;
  const isSeen = allowsAddress(caller, [...live, ...deleted]) && live.every((prospect) => isVisible(caller, prospect));
  if (stored === undefined || !isSeen) throw notFound("address");
  const current = presentAddress(stored);
  const address = patched(current, patch);
  const after = () => spreadAll(context, caller, id);
  if (isDeepStrictEqual(current, address)) {
    return { writes: [], answer: address, ...(stored.isSpreading === true && { after }) };
  }
  const isSpreading = live.length > limits.prospectsChangedAtOnce;
  const now = iso(context.clock.now());
  const copies = isSpreading ? [] : live.flatMap((prospect) => copyWrites(prospect, address, caller, now));
  const write = addressWrite(stored, address, holders, { isSpreading, now });
  return { writes: [write, ...copies], answer: address, ...(isSpreading && { after }) };
}

/** If all holders are deleted, the new row lists one holder for each assignee, because the assignees decide who may see the address. */
function addressWrite(
  stored: StoredAddress,
  next: Address,
  { live, deleted }: Holders,
  { isSpreading: isLeft, now }: { readonly isSpreading: boolean; readonly now: string },
): Write {
  const { id, ...fields } = next;
  const isSpreading = isLeft ? true : undefined;
  const oneOfEachAssignee = new Map(deleted.map((prospect) => [prospect.assignedToUserId, prospect])).values();
  const deciding = live.length > 0 ? live : [...oneOfEachAssignee];
  const prospectIds = deciding.length > 0 ? new Set(deciding.map((prospect) => prospect.id)) : undefined;
  if (stored.isPacked) {
    return firstRow({ ...stored, ...fields, isSpreading, prospectIds, updatedAt: now, version: stored.version + 1 });
  }
  const gone = Object.entries({ isSpreading, prospectIds }).flatMap(([name, it]) => (it === undefined ? [name] : []));
  return {
    update: keys.address(stored.companyId, id),
    change: { set: { ...fields, isSpreading, prospectIds, updatedAt: now }, remove: gone, add: { version: 1 } },
    when: unchanged(stored),
  };
}

async function spreadAll(context: ApiContext, caller: Caller, id: number): Promise<void> {
  let isLeft = true;
  while (isLeft) isLeft = await optimistic(() => spread(context, caller, id));
}

/** Changes the outdated copies, or removes the mark `isSpreading` if all copies are up to date. Returns true if another call is needed. */
async function spread(context: ApiContext, caller: Caller, id: number): Promise<boolean> {
  const stored = existing(await findAddress(context, caller.companyId, id), "address");
  const address = presentAddress(stored);
  const { live } = await holdersOf(context.table, stored);
  const outdated = live.filter((prospect) => !isDeepStrictEqual(prospect.address, address));
  const key = keys.address(caller.companyId, id);
  if (outdated.length === 0) {
    await context.table.transact([{ update: key, change: { remove: ["isSpreading"] }, when: unchanged(stored) }]);
    return false;
  }
  const now = iso(context.clock.now());
  for (let done = 0; done < outdated.length; done += limits.prospectsChangedAtOnce) {
    const step = outdated.slice(done, done + limits.prospectsChangedAtOnce);
    const copies = step.flatMap((prospect) => copyWrites(prospect, address, caller, now));
    await context.table.transact([{ check: key, when: equals("version", stored.version) }, ...copies]);
  }
  return true;
}

/** Returns the condition that neither the address nor its holders have changed since the read. */
const unchanged = ({ version, links }: StoredAddress) => all(equals("version", version), equals("links", links));

function copyWrites(prospect: StoredProspect, address: Address, caller: Caller, now: string): Write[] {
  const moved = { updatedAt: now, updatedBy: caller.userId, version: prospect.version + 1 };
  return replaceProspect(prospect, { ...prospect, ...moved, address });
}

/** A computed `formattedAddress` is computed again. One from a client stays, unless the patch sets it to null. */
function patched(current: Address, patch: AddressPatch): Address {
  const withoutText = { ...current, formattedAddress: null };
  const wasComputed = isDeepStrictEqual(current, addressFrom(current.id, withoutText));
  return addressFrom(current.id, withPatch<Address>(wasComputed ? withoutText : current, patch));
}
