/** Addresses of a company: where prospects live or trade. */

import * as z from "zod/mini";
import { limits } from "#shared/limits.ts";
import { Id, named, Timestamp, text } from "#shared/schema.ts";

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

export const StoredAddress = z.extend(Address, {
  type: z.literal("address"),
  companyId: Id,
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type StoredAddress = z.infer<typeof StoredAddress>;
