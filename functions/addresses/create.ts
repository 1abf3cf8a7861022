/** POST /api/addresses: creates an address. */
import { command } from "#shared/http/endpoint.ts";
import { Address } from "#shared/prospects/address.ts";
import { NewAddress } from "#shared/prospects/address-input.ts";
import { createAddress } from "#shared/prospects/addresses.ts";

export const handler = command(
  {
    summary: "Create an address",
    description:
      "Several prospects can share the address: each of them refers to it with `addressId`. A prospect with the field `address` gets a separate address instead.",
    allow: "everyone",
    scope: "reference:write",
    body: NewAddress,
    status: 201,
    response: Address,
  },
  ({ context, caller, body }) => createAddress(context, caller.companyId, body),
);
