/** GET /api/addresses/{id}: reads one address. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Address } from "#shared/prospects/address.ts";
import { getAddress } from "#shared/prospects/addresses.ts";

export const handler = endpoint(
  { summary: "Get an address", allow: "everyone", scope: "prospects:read", path: IdPath, response: Address },
  ({ context, caller, path }) => getAddress(context, caller, path.id),
);
