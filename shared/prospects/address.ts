/** What an address is made of, and when two are the same. */
import type { Address, NewAddress } from "#shared/prospects/address-schema.ts";

export function addressFrom(id: number, input: NewAddress): Address {
  const { address1, address2 = null, city, state, zip } = input;
  const lines = [address1, address2, city, `${state} ${zip}`].filter((line) => line !== null && line !== "");
  return { id, address1, address2, city, state, zip, formattedAddress: input.formattedAddress ?? lines.join(", ") };
}

export const isSame = (a: Address, b: Address): boolean =>
  a.id === b.id &&
  a.address1 === b.address1 &&
  a.address2 === b.address2 &&
  a.city === b.city &&
  a.state === b.state &&
  a.zip === b.zip &&
  a.formattedAddress === b.formattedAddress;
