/** Addresses of a company: where prospects live or trade. */

import * as z from "zod/mini";
import { limits } from "#shared/limits.ts";
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

export const AddressPatch = named(
  "AddressPatch",
  z.partial(NewAddress),
  "Only sent fields change. `formattedAddress` follows the others unless it was given, or when it is sent as null.",
);
export type AddressPatch = z.infer<typeof AddressPatch>;

/** In order of their ids. An answer shorter than `limit` is the last one. */
export const AddressQuery = z.object({
  /** Only ids above this one. */
  after: z._default(AfterId, 0),
  limit: z._default(PageSize, limits.pageSizeMax),
});
export type AddressQuery = z.output<typeof AddressQuery>;

export const StoredAddress = z.extend(Address, {
  type: z.literal("address"),
  companyId: Id,
  /** Counts the changes of the address itself: a prospect takes a copy on condition that it is of this version. */
  version: z.int(),
  /** Prospects that hold a copy, and some that did: the copy's id tells. */
  prospectIds: z.optional(z.set(Id)),
  /** Counts the additions to `prospectIds`, those of known members included. */
  links: z.int(),
  /** A change that has not reached all its prospects yet. */
  isSpreading: z.optional(z.boolean()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  /** Never stored: it stands among the addresses of its import and has no row of its own yet. */
  isPacked: z.optional(z.literal(true)),
});
export type StoredAddress = z.infer<typeof StoredAddress>;
