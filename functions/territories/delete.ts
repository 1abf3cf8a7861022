/** DELETE /api/territories/{id}: deletes a territory. The row stays in the table, but no request returns the territory. */
import { command } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { deleteTerritory } from "#shared/territories/territories.ts";

export const handler = command(
  {
    summary: "Delete a territory",
    description: "No later request returns the territory. The service keeps its data.",
    allow: "everyone",
    scope: "territories:write",
    path: IdPath,
    response: Deleted,
  },
  ({ context, caller, path }) => deleteTerritory(context, caller, path.id),
);
