/** GET /api/addresses/{id}: one address. */
import { presentAddress, readAddress } from "#shared/addresses/addresses.ts";
import { Address } from "#shared/addresses/schema.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";

export const handler = endpoint(
  { summary: "Get an address", tag: "Addresses", allow: "everyone", path: IdPath, status: 200, response: Address },
  async ({ world, caller, path }) => presentAddress(await readAddress(world, caller.companyId, path.id)),
);
