/** The schemas of requests about addresses. */
import * as z from "zod/mini";
import { isBlank } from "#shared/blank.ts";
import { explain, pageSizeText } from "#shared/documentation.ts";
import { isObject } from "#shared/json.ts";
import * as limits from "#shared/limits.ts";
import { Address, formatted } from "#shared/prospects/address.ts";
import { AfterId, named, orNull, PageSize, requiredText, text } from "#shared/schema.ts";

const line = requiredText(limits.addressLine);

export const NewAddress = named(
  "NewAddress",
  z.object({
    address1: line,
    address2: z.optional(orNull(text(limits.addressLine))),
    city: line,
    state: line,
    zip: line,
    formattedAddress: z.optional(orNull(text(limits.formattedAddress))),
  }),
  "A new postal address. `formattedAddress` is computed when it is not given.",
);
export type NewAddress = z.infer<typeof NewAddress>;

/* @__PURE__ */ explain([NewAddress], () => ({
  example: { address1: "1437 Bannock St", city: "Denver", state: "CO", zip: "80202" },
}));

/** An address whose fields are all blank counts as null. */
export const AddressOrNull = z.pipe(
  z.transform((value: z.input<typeof NewAddress> | null) => (isBlankAddress(value) ? null : value)),
  z.nullable(NewAddress),
);

/** True if the client sent fields and all are blank. `{}` is no blank address, so the schema reports its missing fields. */
function isBlankAddress(value: unknown): boolean {
  if (!isObject(value)) return false;
  const parts = Object.keys(NewAddress.shape).flatMap((part) => value[part] ?? []);
  return parts.length > 0 && parts.every((part) => typeof part === "string" && isBlank(part));
}

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
    limit: pageSizeText(" An answer shorter than the limit is the last one.", limits.pageSizeMax),
  },
}));

export function addressFrom(id: number, input: NewAddress): Address {
  const { address1, address2 = null, city, state, zip } = input;
  const lines = { address1, address2, city, state, zip };
  return { id, ...lines, formattedAddress: input.formattedAddress ?? formatted(lines) };
}
