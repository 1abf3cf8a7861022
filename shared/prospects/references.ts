/** Checks what a write of a prospect names: status, users and address of the caller's company that can be used. */
import {
  addressFrom,
  findAddress,
  linkWrite,
  newAddressWrite,
  presentAddress,
  sameAddress,
} from "#shared/addresses/addresses.ts";
import type { Address, NewAddress } from "#shared/addresses/schema.ts";
import type { Dictionary } from "#shared/companies/dictionary.ts";
import type { Write } from "#shared/db/table.ts";
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
