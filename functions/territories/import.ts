/** POST /api/territories/import: creates territories from GeoJSON. */
import { endpoint } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";
import { IMPORT_GROUP, importTerritories, NewTerritories, TerritoryImport } from "#shared/territories/import.ts";

export const handler = endpoint(
  {
    summary: "Import territories from GeoJSON",
    description: `Accepts a FeatureCollection of at most ${limits.territoryFeatures} features and ${limits.bodyBytes} bytes, as \`application/geo+json\` or \`application/json\`. Each feature becomes one territory. Its polygon is the one ring of the Polygon, stored as sent but without heights. Each polygon of a MultiPolygon becomes a territory, named \`NAME (1)\`, \`NAME (2)\` and so on. A MultiPolygon that is only cut at the 180th meridian becomes one. Holes and other geometries fail. A feature without a geometry becomes a territory without a polygon. The property \`name\` becomes the name; \`totalProperties\` and \`assignedToUserId\` are read too. A feature is skipped if the company, or an earlier feature, has the same name (in upper or lower case) and the same ring. So the same file can be sent again. A feature that fails does not stop the others. The features are created in groups of ${IMPORT_GROUP}. Send an \`Idempotency-Key\` to repeat a request that was interrupted: what it has created is then not created again, even if users have changed it since.`,
    allow: "everyone",
    scope: "territories:write",
    body: NewTerritories,
    bodyMediaType: "application/geo+json",
    response: TerritoryImport,
  },
  ({ context, caller, body }) => importTerritories(context, caller, body),
);
