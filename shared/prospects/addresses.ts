/**
 * Creates, finds and changes the addresses of a company, and links prospects to them.
 *
 * A restricted user sees an address that no prospect holds, or that a visible prospect holds.
 */
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, all, equals, present } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { blockOf, keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import type { Table } from "#shared/db/table.ts";
import { ApiError, notFound } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import {
  Address,
  type AddressPatch,
  addressFrom,
  isPack,
  isSame,
  type NewAddress,
  StoredAddress,
  unpackAddresses,
} from "#shared/prospects/address.ts";
import { isPublished, isVisible } from "#shared/prospects/read.ts";
import { replaceProspect } from "#shared/prospects/rows.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";

/** Without `prospectId` nobody has the address yet. */
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

/** Goes with the prospect that takes a copy; fails when the address is no longer what was copied. */
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

/** Goes with the prospect that gives its copy up. It counts as a link, so that a change of the address that is under way looks again. */
export function unlinkWrite(stored: StoredAddress, prospectId: number): Write {
  const { prospectIds: _, ...others } = stored;
  // Among the others of its import it has this one prospect.
  if (stored.isPacked) return firstRow({ ...others, links: stored.links + 1 });
  return {
    update: keys.address(stored.companyId, stored.id),
    change: { add: { links: 1 }, drop: { prospectIds: new Set([prospectId]) } },
    when: present,
  };
}

/** Of an address that came with an import and stood among the others of it until now. Fails when somebody was faster. */
export function firstRow({ isPacked: _, ...address }: StoredAddress): Write {
  return { put: { ...keys.address(address.companyId, address.id), ...address }, when: absent };
}

/** The address, or `undefined` when the company has none with this id: its own row, or among those of an import. */
export async function findAddress(
  { table }: ApiContext,
  companyId: number,
  id: number,
): Promise<StoredAddress | undefined> {
  const items = await table.batchGet([keys.address(companyId, id), keys.addressPack(companyId, blockOf(id))]);
  const own = items.find((item) => !isPack(item));
  if (own !== undefined) return StoredAddress.parse(own);
  const [pack] = items;
  if (pack === undefined) return undefined;
  const { importId, addresses } = unpackAddresses(pack);
  const found = addresses.find((address) => address.id === id);
  return found !== undefined && (await isPublished(table, companyId, importId)) ? found : undefined;
}

export async function readAddress(context: ApiContext, companyId: number, id: number): Promise<StoredAddress> {
  const found = await findAddress(context, companyId, id);
  if (found === undefined) throw notFound("address");
  return found;
}

/** As the interface shows it and prospects hold it. */
export const presentAddress = (stored: StoredAddress): Address => Address.parse(stored);

export async function createAddress(context: ApiContext, companyId: number, input: NewAddress): Promise<Address> {
  const address = addressFrom(await context.ids.nextAddress(companyId), input);
  await context.commit([newAddressWrite(companyId, address, iso(context.clock.now()))], address);
  return address;
}

/** Does the input say what the address already says? */
export const sameAddress = (address: Address | null, input: NewAddress): boolean =>
  address !== null && isSame(address, addressFrom(address.id, input));

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

const { prospectsChangedAtOnce: PROSPECTS_AT_ONCE } = limits;

/**
 * Only sent fields change. Some prospects change in one transaction with the address. More follow in steps, each of
 * which may be repeated: the row says that the change is spreading until it has reached all, and whoever patches the
 * address next, be it with nothing, goes on with it.
 */
export async function updateAddress(
  context: ApiContext,
  caller: Caller,
  id: number,
  patch: AddressPatch,
): Promise<Address> {
  const { address, isSpreading } = await optimistic(() => change(context, caller, id, patch));
  for (let goOn = isSpreading; goOn; ) goOn = await optimistic(() => spread(context, caller, id));
  return address;
}

interface Changed {
  readonly address: Address;
  /** Prospects are left that have not heard of it. */
  readonly isSpreading: boolean;
}

async function change(context: ApiContext, caller: Caller, id: number, patch: AddressPatch): Promise<Changed> {
  const stored = await readAddress(context, caller.companyId, id);
  const prospects = await holdersOf(context.table, stored);
  // The change would be theirs too.
  if (!prospects.every((prospect) => isVisible(caller, prospect))) throw notFound("address");
  const current = presentAddress(stored);
  const address = patched(current, patch);
  if (isSame(current, address)) return { address, isSpreading: stored.isSpreading === true };
  const isSpreading = prospects.length > PROSPECTS_AT_ONCE;
  const now = iso(context.clock.now());
  const writes = isSpreading ? [] : prospects.flatMap((prospect) => copyWrites(prospect, address, caller, now));
  await context.table.transact([addressWrite(stored, address, prospects, now), ...writes]);
  return { address, isSpreading };
}

/** Prospects that moved on or were deleted are forgotten with it. */
function addressWrite(stored: StoredAddress, next: Address, prospects: readonly StoredProspect[], now: string): Write {
  const { id, ...fields } = next;
  const isSpreading = prospects.length > PROSPECTS_AT_ONCE ? true : undefined;
  const prospectIds = prospects.length > 0 ? new Set(prospects.map((prospect) => prospect.id)) : undefined;
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

/** Brings the prospects whose copy is behind up to date; takes the mark off when there are none. Gives whether to go on. */
async function spread(context: ApiContext, caller: Caller, id: number): Promise<boolean> {
  const stored = await readAddress(context, caller.companyId, id);
  const address = presentAddress(stored);
  const behind = (await holdersOf(context.table, stored)).filter((prospect) => isBehind(prospect, address));
  const key = keys.address(caller.companyId, id);
  if (behind.length === 0) {
    await context.table.transact([{ update: key, change: { remove: ["isSpreading"] }, when: unchanged(stored) }]);
    return false;
  }
  const now = iso(context.clock.now());
  for (let done = 0; done < behind.length; done += PROSPECTS_AT_ONCE) {
    const step = behind.slice(done, done + PROSPECTS_AT_ONCE);
    const copies = step.flatMap((prospect) => copyWrites(prospect, address, caller, now));
    await context.table.transact([{ check: key, when: equals("version", stored.version) }, ...copies]);
  }
  return true;
}

const isBehind = (prospect: StoredProspect, address: Address): boolean =>
  prospect.address !== null && !isSame(prospect.address, address);

/** Nobody changed the address or took a copy of it since it was read. */
const unchanged = ({ version, links }: StoredAddress) => all(equals("version", version), equals("links", links));

function copyWrites(prospect: StoredProspect, address: Address, caller: Caller, now: string): Write[] {
  const moved = { updatedAt: now, updatedBy: caller.userId, version: prospect.version + 1 };
  return replaceProspect(prospect, { ...prospect, ...moved, address });
}

/** A formatted address that was computed is computed anew; one that was given stays until another is, or null. */
function patched(current: Address, patch: AddressPatch): Address {
  const wasComputed = isSame(current, addressFrom(current.id, { ...current, formattedAddress: null }));
  const { formattedAddress = wasComputed ? null : current.formattedAddress } = patch;
  return addressFrom(current.id, {
    address1: patch.address1 ?? current.address1,
    address2: patch.address2 === undefined ? current.address2 : patch.address2,
    city: patch.city ?? current.city,
    state: patch.state ?? current.state,
    zip: patch.zip ?? current.zip,
    formattedAddress,
  });
}
