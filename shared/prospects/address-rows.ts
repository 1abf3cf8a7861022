/**
 * The stored rows of addresses. An import packs its addresses into one compressed row for each block of 128 ids. An address that changes
 * later gets a row of its own, which replaces the packed form.
 */
import * as z from "zod/mini";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import { Address } from "#shared/prospects/address.ts";
import { addressFrom } from "#shared/prospects/address-input.ts";
import { Id, Timestamp } from "#shared/schema.ts";

export const StoredAddress = z.extend(Address, {
  type: z.literal("address"),
  companyId: Id,
  /** Increases with each change of the address. */
  version: z.int(),
  /** The holders: prospects with a copy of the address. A holder may be deleted, or have another address now. */
  prospectIds: z.optional(z.set(Id)),
  /** Increases with each change of `prospectIds`. */
  links: z.int(),
  /** True while a change of the address is not yet written to all holders. */
  isSpreading: z.optional(z.boolean()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  /** True if the address was read from a packed row. Not stored. */
  isPacked: z.optional(z.literal(true)),
});
export type StoredAddress = z.infer<typeof StoredAddress>;

export type PackedAddress = Omit<Address, "formattedAddress"> & { readonly prospectId: number };

export const AddressPack = z.object({
  type: z.literal("addressPack"),
  companyId: Id,
  importId: z.string(),
  createdAt: Timestamp,
  bytes: z.instanceof(Uint8Array),
});

/** The values of a packed address: its id, the id of its prospect, address1, address2, city, state and zip. */
export const PackedAddressFields = z.tuple([
  Id,
  Id,
  z.string(),
  z.nullable(z.string()),
  z.string(),
  z.string(),
  z.string(),
]);
type PackedAddressFields = z.infer<typeof PackedAddressFields>;

export const isPack = (item: Item): boolean => item.type === "addressPack";

export function packAddresses(
  companyId: number,
  importId: string,
  createdAt: string,
  addresses: readonly PackedAddress[],
): (keys.Key & Item)[] {
  return [...Map.groupBy(addresses, ({ id }) => keys.blockOf(id))].map(([block, own]) => {
    const bytes = packed(
      own.map((a): PackedAddressFields => [a.id, a.prospectId, a.address1, a.address2, a.city, a.state, a.zip]),
    );
    return { ...keys.addressPack(companyId, block), type: "addressPack", companyId, importId, createdAt, bytes };
  });
}

/** Returns the addresses of a packed row, each in the form that a row of its own has. */
export function unpackAddresses(item: Item): { importId: string; addresses: StoredAddress[] } {
  const { companyId, importId, createdAt, bytes } = AddressPack.parse(item);
  const addresses = unpacked(z.array(PackedAddressFields), bytes).map(
    ([id, prospectId, address1, address2, city, state, zip]): StoredAddress => ({
      ...addressFrom(id, { address1, address2, city, state, zip }),
      type: "address",
      companyId,
      version: 1,
      prospectIds: new Set([prospectId]),
      links: 1,
      createdAt,
      updatedAt: createdAt,
      isPacked: true,
    }),
  );
  return { importId, addresses };
}
