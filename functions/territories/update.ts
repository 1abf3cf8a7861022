/** PATCH /api/territories/{id}: changes a territory. Fields that the request does not contain keep their values. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Territory, TerritoryPatch, updateTerritory } from "#shared/territories/territories.ts";

export const handler = command(
  {
    summary: "Change a territory",
    description:
      "Only sent fields change. A polygon is replaced as a whole. The `assignedToUserId` null unassigns the territory.",
    allow: "everyone",
    scope: "territories:write",
    path: IdPath,
    body: TerritoryPatch,
    response: Territory,
  },
  ({ context, caller, path, body }) => updateTerritory(context, caller, path.id, body),
);
