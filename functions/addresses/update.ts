/** PATCH /api/addresses/{id}: changes an address. All prospects at the address show the change. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import * as limits from "#shared/limits.ts";
import { Address } from "#shared/prospects/address.ts";
import { AddressPatch } from "#shared/prospects/address-input.ts";
import { updateAddress } from "#shared/prospects/addresses.ts";

export const handler = command(
  {
    summary: "Change an address",
    description: `Only sent fields change. Every prospect with this address shows the change and emits \`prospect.updated\`. Up to ${limits.prospectsChangedAtOnce} prospects change in the same transaction as the address.`,
    allow: "everyone",
    scope: "reference:write",
    path: IdPath,
    body: AddressPatch,
    response: Address,
  },
  ({ context, caller, path, body }) => updateAddress(context, caller, path.id, body),
);
