/** POST /api/territories: creates a territory. */
import { command } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";
import { createTerritory, NewTerritory, Territory } from "#shared/territories/territories.ts";

export const handler = command(
  {
    summary: "Create a territory",
    description: `Every field is optional. A polygon has 3 to ${limits.polygonPointsMax} \`[lng, lat]\` points, open or closed, and is stored exactly as sent. Assigning a territory does not change prospects. A company may have ${limits.territoriesPerCompany} territories and ${limits.polygonBytesPerCompany / 1_000_000} MB of polygons. Above that the answer is 409.`,
    allow: "everyone",
    scope: "territories:write",
    body: NewTerritory,
    status: 201,
    response: Territory,
  },
  ({ context, caller, body }) => createTerritory(context, caller, body),
);
