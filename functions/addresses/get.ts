/** GET /api/addresses/{id}: one address. */
import { Address } from "#shared/addresses/schema.ts";
import { getAddress } from "#shared/addresses/visibility.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";

export const handler = endpoint(
  { summary: "Get an address", tag: "Addresses", allow: "everyone", path: IdPath, status: 200, response: Address },
  ({ world, caller, path }) => getAddress(world, caller, path.id),
);
