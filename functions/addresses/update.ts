/** PATCH /api/addresses/{id}: changes an address for all prospects that have it. */

import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { limits } from "#shared/limits.ts";
import { Address, AddressPatch } from "#shared/prospects/address.ts";
import { updateAddress } from "#shared/prospects/addresses.ts";

export const handler = endpoint(
  {
    summary: "Change an address",
    description: `Only sent fields change. Every prospect that has the address shows the change and is told to webhooks as updated; up to ${limits.prospectsChangedAtOnce} of them change at once with it.`,
    tag: "Addresses",
    allow: "everyone",
    path: IdPath,
    body: AddressPatch,
    status: 200,
    response: Address,
  },
  ({ context, caller, path, body }) => updateAddress(context, caller, path.id, body),
);
