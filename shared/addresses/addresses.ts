/** Makes and finds addresses of a company. */
import { type Address, type NewAddress, StoredAddress } from "#shared/addresses/schema.ts";
import { absent } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Write } from "#shared/db/table.ts";
import type { World } from "#shared/world.ts";

export function addressFrom(id: number, input: NewAddress): Address {
  const { address1, address2 = null, city, state, zip } = input;
  const lines = [address1, address2, city, `${state} ${zip}`].filter((line) => line !== null && line !== "");
  return { id, address1, address2, city, state, zip, formattedAddress: input.formattedAddress ?? lines.join(", ") };
}

export function newAddressWrite(companyId: number, address: Address, now: string): Write {
  const stored: StoredAddress = { ...address, type: "address", companyId, createdAt: now, updatedAt: now };
  return { put: { ...keys.address(companyId, address.id), ...stored }, when: absent };
}

/** The address, or `undefined` when the company has none with this id. */
export async function findAddress({ table }: World, companyId: number, id: number): Promise<Address | undefined> {
  const item = await table.get(keys.address(companyId, id));
  return item === undefined ? undefined : StoredAddress.parse(item);
}

/** Does the input say what the address already says? */
export function sameAddress(address: Address | null, input: NewAddress): boolean {
  if (address === null) return false;
  const wanted = addressFrom(address.id, input);
  return (
    address.address1 === wanted.address1 &&
    address.address2 === wanted.address2 &&
    address.city === wanted.city &&
    address.state === wanted.state &&
    address.zip === wanted.zip &&
    address.formattedAddress === wanted.formattedAddress
  );
}
