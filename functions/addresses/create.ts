/** POST /api/addresses: creates an address. */

import { endpoint } from "#shared/http/endpoint.ts";
import { Address, NewAddress } from "#shared/prospects/address.ts";
import { createAddress } from "#shared/prospects/addresses.ts";

export const handler = endpoint(
  {
    summary: "Create an address",
    description:
      "Several prospects can share the address by `addressId`. A prospect can also create an address of its own with the field `address`.",
    tag: "Addresses",
    allow: "everyone",
    body: NewAddress,
    status: 201,
    response: Address,
  },
  ({ context, caller, body }) => createAddress(context, caller.companyId, body),
);
