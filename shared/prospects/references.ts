/** Checks what a write of a prospect names: status, users and address of the caller's company that can be used. */
import { addressFrom } from "#shared/addresses/address.ts";
import { findAddress, linkWrite, newAddressWrite, presentAddress, sameAddress } from "#shared/addresses/addresses.ts";
import type { Address, NewAddress } from "#shared/addresses/schema.ts";
import type { Caller } from "#shared/auth/caller.ts";
import type { Dictionary } from "#shared/companies/dictionary.ts";
import { freshDictionary, recentDictionary } from "#shared/companies/recent-dictionary.ts";
import { equals, missing } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Write } from "#shared/db/table.ts";
import { badReference } from "#shared/http/problem.ts";
import type { NewProspect } from "#shared/prospects/schema.ts";
import type { StoredStatus } from "#shared/statuses/schema.ts";
import type { StoredUser } from "#shared/users/schema.ts";
import type { World } from "#shared/world.ts";

export function requireStatus(dictionary: Dictionary, id: number): StoredStatus {
  const status = dictionary.statuses.get(id);
  if (status?.isActive !== true) throw badReference("currentStatusId");
  return status;
}

export function requireUser(
  dictionary: Dictionary,
  field: "assignedToUserId" | "assignedByUserId",
  id: number,
): StoredUser {
  const user = dictionary.users.get(id);
  if (user?.isActive !== true) throw badReference(field);
  return user;
}

interface Named {
  readonly dictionary: Dictionary;
  /** Go into the transaction of the write: it fails where a name has changed since. */
  readonly checks: readonly Write[];
}

/**
 * What a new prospect refers to, looked up in memory where it is known there. A caller who is assigned the own prospect signed in a
 * minute ago at most, and needs no check.
 */
export async function requireNamed(
  world: World,
  { companyId, userId }: Caller,
  { currentStatusId, assignedToUserId }: Pick<NewProspect, "currentStatusId" | "assignedToUserId">,
): Promise<Named> {
  const names = ({ statuses, users }: Dictionary): boolean =>
    (currentStatusId == null || statuses.get(currentStatusId)?.isActive === true) &&
    (assignedToUserId == null || users.get(assignedToUserId)?.isActive === true);
  const recent = await recentDictionary(world, companyId);
  const dictionary = names(recent) ? recent : await freshDictionary(world, companyId);
  const checks: Write[] = [];
  if (currentStatusId != null) {
    const { version } = requireStatus(dictionary, currentStatusId);
    checks.push({ check: keys.status(companyId, currentStatusId), when: equals("version", version) });
  }
  if (assignedToUserId != null) {
    const { version } = requireUser(dictionary, "assignedToUserId", assignedToUserId);
    const check = { check: keys.user(companyId, assignedToUserId), when: equals("version", version) };
    if (assignedToUserId !== userId) checks.push(check);
  }
  return { dictionary, checks: checks.length < 2 ? checks : [namesUnchanged(companyId, dictionary)] };
}

/** One check of all names costs two write units, as each of the single ones does. */
const namesUnchanged = (companyId: number, { version }: Dictionary): Write => ({
  check: keys.company(companyId),
  when: version === 0 ? missing("dictionaryVersion") : equals("dictionaryVersion", version),
});

export interface AddressInput {
  readonly addressId?: number | null | undefined;
  readonly address?: NewAddress | null | undefined;
}

export interface AddressChoice {
  /** `null` clears, `undefined` leaves it. */
  readonly address: Address | null | undefined;
  /** Goes into the prospect's transaction: makes the address, or says that the prospect holds a copy of it. */
  readonly link: ((prospectId: number, now: string) => Write) | undefined;
}

/** The address that a write of a prospect asks for. */
export async function resolveAddress(
  world: World,
  companyId: number,
  { addressId, address }: AddressInput,
  current: Address | null,
): Promise<AddressChoice> {
  if (address != null) {
    if (sameAddress(current, address)) return { address: undefined, link: undefined };
    const made = addressFrom(await world.ids.nextAddress(companyId), address);
    return { address: made, link: (prospectId, now) => newAddressWrite(companyId, made, now, prospectId) };
  }
  if (addressId != null && addressId !== current?.id) {
    const found = await findAddress(world, companyId, addressId);
    if (found === undefined) throw badReference("addressId");
    return { address: presentAddress(found), link: (prospectId) => linkWrite(found, prospectId) };
  }
  const cleared = address === null || addressId === null;
  return { address: cleared ? null : undefined, link: undefined };
}
