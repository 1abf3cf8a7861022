/** Checks the status, users and address in the input of a prospect: they must be of the company, active, and visible to the caller. */
import { isDeepStrictEqual } from "node:util";
import type { Caller } from "#shared/auth/caller.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import type { ApiContext } from "#shared/context.ts";
import { equals, missing, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { badReference } from "#shared/errors.ts";
import type { Address } from "#shared/prospects/address.ts";
import { addressFrom } from "#shared/prospects/address-input.ts";
import {
  findAddress,
  findVisibleAddress,
  linkWrite,
  newAddressWrite,
  presentAddress,
  unlinkWrite,
} from "#shared/prospects/addresses.ts";
import type { NewProspect } from "#shared/prospects/input.ts";
import { type Dictionary, freshDictionary, recentDictionary } from "#shared/reference/dictionary.ts";
import type { StoredStatus } from "#shared/reference/schema.ts";

export function requireStatus(dictionary: Dictionary, id: number): StoredStatus {
  const status = dictionary.statuses.get(id);
  if (status?.isActive !== true) throw badReference("an active status", "currentStatusId");
  return status;
}

export function requireUser(
  dictionary: Dictionary,
  field: "assignedToUserId" | "assignedByUserId",
  id: number,
): StoredUser {
  const user = dictionary.users.get(id);
  if (user?.isActive !== true) throw badReference("an active user", field);
  return user;
}

/**
 * The checks fail if the status or a user has changed since the dictionary was read. An assignee who is the caller needs no check, because
 * the authorizer has checked the caller at most a minute ago.
 */
export async function requireReferences(
  context: ApiContext & { readonly dictionary?: Dictionary },
  { companyId, userId }: Caller,
  { currentStatusId, assignedToUserId }: Pick<NewProspect, "currentStatusId" | "assignedToUserId">,
): Promise<{ dictionary: Dictionary; checks: Write[] }> {
  const names = ({ statuses, users }: Dictionary): boolean =>
    (currentStatusId == null || statuses.get(currentStatusId)?.isActive === true) &&
    (assignedToUserId == null || users.get(assignedToUserId)?.isActive === true);
  const recent = context.dictionary ?? (await recentDictionary(context, companyId));
  const isLast = context.dictionary !== undefined || names(recent);
  const dictionary = isLast ? recent : await freshDictionary(context, companyId);
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
  // `context.dictionary` was current when the request began, so the transaction needs no checks.
  if (context.dictionary !== undefined) return { dictionary, checks: [] };
  return { dictionary, checks: checks.length < 2 ? checks : [dictionaryUnchanged(companyId, dictionary)] };
}

/** One check of the dictionary's version replaces two checks of single rows. */
const dictionaryUnchanged = (companyId: number, { version }: Dictionary): Write => ({
  check: keys.company(companyId),
  when: version === 0 ? missing("dictionaryVersion") : equals("dictionaryVersion", version),
});

export interface AddressChoice {
  /** Undefined keeps the address. */
  readonly address: Address | null | undefined;
  /** Returns the writes that create or link the new address, and unlink the previous one. */
  readonly links: (prospectId: number, now: string) => Write[];
}

const unchanged: AddressChoice = { address: undefined, links: () => [] };

export async function resolveAddress(
  context: ApiContext,
  caller: Caller,
  { addressId, address }: Pick<NewProspect, "addressId" | "address">,
  current: Address | null,
): Promise<AddressChoice> {
  const { companyId } = caller;
  if (address != null) {
    if (current !== null && isDeepStrictEqual(current, addressFrom(current.id, address))) return unchanged;
    const [id, unlink] = await Promise.all([context.ids.nextAddress(companyId), unlinkOf(context, companyId, current)]);
    const made = addressFrom(id, address);
    const links = (prospectId: number, now: string): Write[] => [
      newAddressWrite(companyId, made, now, prospectId),
      ...unlink(prospectId),
    ];
    return { address: made, links };
  }
  if (addressId != null) {
    if (addressId === current?.id) return unchanged;
    const [found, unlink] = await Promise.all([
      findVisibleAddress(context, caller, addressId),
      unlinkOf(context, companyId, current),
    ]);
    if (found === undefined) throw badReference("an address", "addressId");
    const links = (prospectId: number): Write[] => [linkWrite(found, prospectId), ...unlink(prospectId)];
    return { address: presentAddress(found), links };
  }
  if (address === undefined && addressId === undefined) return unchanged;
  return { address: null, links: await unlinkOf(context, companyId, current) };
}

async function unlinkOf(
  context: ApiContext,
  companyId: number,
  current: Address | null,
): Promise<(prospectId: number) => Write[]> {
  const stored = current === null ? undefined : await findAddress(context, companyId, current.id);
  return (prospectId) => (stored === undefined ? [] : [unlinkWrite(stored, prospectId)]);
}
