/** Checks what a write of a prospect names: status, users and address of the caller's company that can be used. */

import type { Caller } from "#shared/auth/caller.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import type { ApiContext } from "#shared/context.ts";
import { equals, missing } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { badReference } from "#shared/errors.ts";
import type { Address, NewAddress } from "#shared/prospects/address.ts";
import { addressFrom } from "#shared/prospects/address.ts";
import {
  findAddress,
  linkWrite,
  newAddressWrite,
  presentAddress,
  sameAddress,
  seesAddress,
  unlinkWrite,
} from "#shared/prospects/addresses.ts";
import type { NewProspect } from "#shared/prospects/schema.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { freshDictionary, recentDictionary } from "#shared/reference/dictionary.ts";
import type { StoredStatus } from "#shared/reference/schema.ts";

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
  context: ApiContext,
  { companyId, userId }: Caller,
  { currentStatusId, assignedToUserId }: Pick<NewProspect, "currentStatusId" | "assignedToUserId">,
): Promise<Named> {
  const names = ({ statuses, users }: Dictionary): boolean =>
    (currentStatusId == null || statuses.get(currentStatusId)?.isActive === true) &&
    (assignedToUserId == null || users.get(assignedToUserId)?.isActive === true);
  const recent = await recentDictionary(context, companyId);
  const dictionary = names(recent) ? recent : await freshDictionary(context, companyId);
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
  /** Go into the prospect's transaction: the address that it takes is made or linked, the one that it gives up is unlinked. */
  readonly links: (prospectId: number, now: string) => Write[];
}

const unchanged: AddressChoice = { address: undefined, links: () => [] };

/** The address that a write of a prospect asks for. One that the caller may not see names nothing. */
export async function resolveAddress(
  context: ApiContext,
  caller: Caller,
  { addressId, address }: AddressInput,
  current: Address | null,
): Promise<AddressChoice> {
  const { companyId } = caller;
  if (address != null) {
    if (sameAddress(current, address)) return unchanged;
    const [id, left] = await Promise.all([context.ids.nextAddress(companyId), givenUp(context, companyId, current)]);
    const made = addressFrom(id, address);
    const links = (prospectId: number, now: string): Write[] => [
      newAddressWrite(companyId, made, now, prospectId),
      ...left(prospectId),
    ];
    return { address: made, links };
  }
  if (addressId != null) {
    if (addressId === current?.id) return unchanged;
    const [found, left] = await Promise.all([
      findAddress(context, companyId, addressId),
      givenUp(context, companyId, current),
    ]);
    if (found === undefined || !(await seesAddress(context.table, caller, found))) throw badReference("addressId");
    const links = (prospectId: number): Write[] => [linkWrite(found, prospectId), ...left(prospectId)];
    return { address: presentAddress(found), links };
  }
  if (address === undefined && addressId === undefined) return unchanged;
  return { address: null, links: await givenUp(context, companyId, current) };
}

/** The address that the prospect has so far. */
async function givenUp(
  context: ApiContext,
  companyId: number,
  current: Address | null,
): Promise<(prospectId: number) => Write[]> {
  const stored = current === null ? undefined : await findAddress(context, companyId, current.id);
  return (prospectId) => (stored === undefined ? [] : [unlinkWrite(stored, prospectId)]);
}
