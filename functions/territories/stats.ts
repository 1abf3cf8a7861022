/** GET /api/territories/{id}/stats: counts the prospects inside a territory. */
import { IdPath } from "#shared/http/paths.ts";
import { streamEndpoint } from "#shared/http/streaming.ts";
import { TerritoryStats, territoryStats } from "#shared/territories/stats.ts";

export const handler = streamEndpoint(
  {
    summary: "Count the prospects of a territory",
    description:
      "Exact counts of the prospects inside the polygon (even-odd rule, boundary included) that the caller may see, by status and by representative, and the days since the last change of the one that nobody has changed for the longest time.",
    allow: "everyone",
    scope: "prospects:read",
    path: IdPath,
    response: TerritoryStats,
  },
  ({ context, caller, path }) => territoryStats(context, caller, path.id),
);
