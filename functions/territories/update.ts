/** PATCH /api/territories/{id}: changes the fields that are sent. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Territory, TerritoryPatch, updateTerritory } from "#shared/territories/territories.ts";

export const handler = endpoint(
  {
    summary: "Change a territory",
    description: "Only sent fields change; a polygon is replaced whole, and null as `assignedToUserId` unassigns.",
    tag: "Territories",
    allow: "everyone",
    path: IdPath,
    body: TerritoryPatch,
    status: 200,
    response: Territory,
  },
  ({ context, caller, path, body }) => updateTerritory(context, caller, path.id, body),
);
