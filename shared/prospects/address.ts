/** The schema of an address as the API shows it. */
import * as z from "zod/mini";
import { Id, named } from "#shared/schema.ts";

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

/** Returns the address as one line of text, for an address whose client has sent no `formattedAddress`. */
export const formatted = ({ address1, address2, city, state, zip }: Omit<Address, "id" | "formattedAddress">): string =>
  [address1, address2, city, `${state} ${zip}`].filter((line) => line !== null && line !== "").join(", ");
