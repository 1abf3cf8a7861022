/**
 * The addresses of an import stand together, one compressed row for each block of 128 ids, until one of them is changed: that one gets
 * a row of its own, which then holds in its place.
 */
import * as z from "zod/mini";
import type { Item } from "#shared/db/item.ts";
import { blockOf, type Key, keys } from "#shared/db/keys.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import { addressFrom } from "#shared/prospects/address.ts";
import type { Address, StoredAddress } from "#shared/prospects/address-schema.ts";
import { Id, Timestamp } from "#shared/schema.ts";

export type PackedAddress = Omit<Address, "formattedAddress"> & { readonly prospectId: number };

const AddressPack = z.object({
  type: z.literal("addressPack"),
  companyId: Id,
  importId: z.string(),
  createdAt: Timestamp,
  bytes: z.instanceof(Uint8Array),
});

/** Id, prospect, address1, address2, city, state, zip. */
const Fields = z.tuple([Id, Id, z.string(), z.nullable(z.string()), z.string(), z.string(), z.string()]);

export const isPack = (item: Item): boolean => item.type === "addressPack";

export function packAddresses(
  companyId: number,
  importId: string,
  createdAt: string,
  addresses: readonly PackedAddress[],
): (Key & Item)[] {
  return [...Map.groupBy(addresses, ({ id }) => blockOf(id))].map(([block, own]) => {
    const bytes = packed(
      own.map((a): z.infer<typeof Fields> => [a.id, a.prospectId, a.address1, a.address2, a.city, a.state, a.zip]),
    );
    return { ...keys.addressPack(companyId, block), type: "addressPack", companyId, importId, createdAt, bytes };
  });
}

/** As rows of their own would be, and which import they came with. */
export function unpackAddresses(item: Item): { importId: string; addresses: StoredAddress[] } {
  const { companyId, importId, createdAt, bytes } = AddressPack.parse(item);
  const addresses = unpacked(z.array(Fields), bytes).map(
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
