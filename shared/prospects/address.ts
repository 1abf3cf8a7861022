/**
 * Schemas of addresses, and the packed rows of imported addresses.
 *
 * An import stores its addresses in one compressed row for each block of 128 ids. An address that changes later gets a separate row, which
 * takes precedence over the packed copy.
 */

import * as z from "zod/mini";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { blockOf, type Key } from "#shared/db/keys.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import { explain } from "#shared/documentation.ts";
import * as limits from "#shared/limits.ts";
import { AfterId, Id, named, PageSize, Timestamp, text } from "#shared/schema.ts";

export const Address = named(
  "Address",
  z.object({
    id: Id,
    address1: z.string(),
    address2: z.nullable(z.string()),
    city: z.string(),
    state: z.string(),
    zip: z.string(),
    formattedAddress: z.nullable(z.string()),
  }),
  "A postal address.",
);
export type Address = z.infer<typeof Address>;

const line = text(limits.addressLine, 1);

export const NewAddress = named(
  "NewAddress",
  z.object({
    address1: line,
    address2: z.optional(z.nullable(text(limits.addressLine))),
    city: line,
    state: line,
    zip: line,
    formattedAddress: z.optional(z.nullable(text(4 * limits.addressLine))),
  }),
  "A new postal address. `formattedAddress` is computed when it is not given.",
);
export type NewAddress = z.infer<typeof NewAddress>;

/* @__PURE__ */ explain([NewAddress], () => ({
  example: { address1: "1437 Bannock St", city: "Denver", state: "CO", zip: "80202" },
}));

export const AddressPatch = named(
  "AddressPatch",
  z.partial(NewAddress),
  "Only sent fields change. `formattedAddress` follows the others unless it was given, or when it is sent as null.",
);
export type AddressPatch = z.infer<typeof AddressPatch>;

/* @__PURE__ */ explain([Address, NewAddress, AddressPatch], () => ({
  fields: {
    address1: "Street and number.",
    address2: "Flat, suite or floor.",
    formattedAddress: "The address in one line: as it was given, or else computed from the other fields.",
  },
}));
/* @__PURE__ */ explain([AddressPatch], () => ({ example: { address2: "Suite 200" } }));

export const AddressQuery = z.object({
  /** Only addresses with a higher id are listed. */
  after: z._default(AfterId, 0),
  limit: z._default(PageSize, limits.pageSizeMax),
});
export type AddressQuery = z.output<typeof AddressQuery>;

/* @__PURE__ */ explain([AddressQuery], () => ({
  fields: {
    after: {
      description: "Only ids above this one.",
      example: 1024,
      schema: { type: "integer", minimum: 0, default: 0 },
    },
    limit: {
      description: `A larger value counts as ${limits.pageSizeMax}. An answer shorter than the limit is the last one.`,
      example: 100,
      schema: { type: "integer", minimum: 1, default: limits.pageSizeMax },
    },
  },
}));

export const StoredAddress = z.extend(Address, {
  type: z.literal("address"),
  companyId: Id,
  /** Each change of the address increments the version. A write that links a prospect to the address fails if the version has changed. */
  version: z.int(),
  /**
   * Ids of the prospects that have a copy of the address, including deleted prospects. Old rows may also contain prospects that now have
   * another address.
   */
  prospectIds: z.optional(z.set(Id)),
  /** Number of changes of `prospectIds`, for optimistic locking. */
  links: z.int(),
  /** True while copies of the address in prospects may be outdated, because a change has not reached all of them. */
  isSpreading: z.optional(z.boolean()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  /** True if the address exists only in the packed row of its import. Never stored. */
  isPacked: z.optional(z.literal(true)),
});
export type StoredAddress = z.infer<typeof StoredAddress>;

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

export type PackedAddress = Omit<Address, "formattedAddress"> & { readonly prospectId: number };

const AddressPack = z.object({
  type: z.literal("addressPack"),
  companyId: Id,
  importId: z.string(),
  createdAt: Timestamp,
  bytes: z.instanceof(Uint8Array),
});

/** A packed address as a tuple: id, id of the prospect, address1, address2, city, state and zip. */
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

/** Returns the addresses of a packed row as if they had separate rows, and the id of their import. */
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
