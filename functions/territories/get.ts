/** GET /api/territories/{id}: reads one territory. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { getTerritory, Territory } from "#shared/territories/territories.ts";

export const handler = endpoint(
  { summary: "Get a territory", allow: "everyone", scope: "territories:read", path: IdPath, response: Territory },
  ({ context, caller, path }) => getTerritory(context, caller.companyId, path.id),
);
