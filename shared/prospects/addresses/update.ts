/** Changes an address for all prospects that hold a copy of it. */

import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { all, equals } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import { notFound } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import { addressFrom, isSame } from "#shared/prospects/address.ts";
import type { Address, AddressPatch, StoredAddress } from "#shared/prospects/address-schema.ts";
import { holdersOf } from "#shared/prospects/address-visibility.ts";
import { firstRow, presentAddress, readAddress } from "#shared/prospects/addresses.ts";
import { replaceProspect } from "#shared/prospects/row-writes.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import { isVisible } from "#shared/prospects/visibility.ts";

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
