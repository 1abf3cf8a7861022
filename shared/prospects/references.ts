/** Checks what a write of a prospect names: status, users and address of the caller's company that can be used. */
import { addressFrom, findAddress, sameAddress } from "#shared/addresses/addresses.ts";
import type { Address, NewAddress } from "#shared/addresses/schema.ts";
import type { Dictionary } from "#shared/companies/dictionary.ts";
import { badReference } from "#shared/http/problem.ts";
import type { World } from "#shared/world.ts";

export function requireStatus(dictionary: Dictionary, id: number): void {
  if (dictionary.statuses.get(id)?.isActive !== true) throw badReference("currentStatusId");
}

export function requireUser(dictionary: Dictionary, field: "assignedToUserId" | "assignedByUserId", id: number): void {
  if (dictionary.users.get(id)?.isActive !== true) throw badReference(field);
}

export interface AddressInput {
  readonly addressId?: number | null | undefined;
  readonly address?: NewAddress | null | undefined;
}

/** The address a write asks for, and whether it has yet to be made. `null` clears, `undefined` leaves it. */
export async function resolveAddress(
  world: World,
  companyId: number,
  input: AddressInput,
  current: Address | null,
): Promise<{ address: Address | null | undefined; isNew: boolean }> {
  const { addressId, address } = input;
  if (address != null) {
    if (sameAddress(current, address)) return { address: undefined, isNew: false };
    return { address: addressFrom(await world.ids.next(), address), isNew: true };
  }
  if (addressId != null && addressId !== current?.id) {
    const found = await findAddress(world, companyId, addressId);
    if (found === undefined) throw badReference("addressId");
    return { address: found, isNew: false };
  }
  const cleared = address === null || addressId === null;
  return { address: cleared ? null : undefined, isNew: false };
}
