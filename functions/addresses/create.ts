/** POST /api/addresses: a new address. */
import { createAddress } from "#shared/addresses/addresses.ts";
import { Address, NewAddress } from "#shared/addresses/schema.ts";
import { endpoint } from "#shared/http/endpoint.ts";

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
  ({ world, caller, body }) => createAddress(world, caller.companyId, body),
);
