/** POST /api/addresses: a new address. */

import { endpoint } from "#shared/http/endpoint.ts";
import { Address, NewAddress } from "#shared/prospects/address.ts";
import { createAddress } from "#shared/prospects/addresses.ts";

export const handler = endpoint(
  {
    summary: "Create an address",
    description: "For prospects to share by `addressId`. A prospect can also bring its own as `address`.",
    tag: "Addresses",
    allow: "everyone",
    body: NewAddress,
    status: 201,
    response: Address,
  },
  ({ context, caller, body }) => createAddress(context, caller.companyId, body),
);
