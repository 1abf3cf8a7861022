/** GET /api/territories/tiles/{z}/{x}/{y}: returns a vector tile of the map with the company's territories. */
import { streamBytes } from "#shared/http/streaming.ts";
import { territoryTile } from "#shared/map/territory-tile.ts";
import { TilePath, VECTOR_TILE_TYPE, VectorTile } from "#shared/map/tile.ts";

export const handler = streamBytes(
  {
    summary: "Get a map tile of territories",
    description:
      "A vector tile (Mapbox Vector Tile 2.1, extent 4096) with the polygons of the company's territories. The layer `territories` has one polygon for each territory, cut 64 units beyond the edges of the tile, and simplified by at most 2 units. A polygon that crosses itself has several rings, by the even-odd rule; if it crosses itself more than 256 times, it is drawn as it is. A polygon across the 180th meridian is drawn on both sides of the map. A polygon that would take too much of the work of the tile is drawn as its box, and the layer `meta` then has a point with `boxes`, the number of such polygons. The attributes of a polygon are `id` (also as the id of the feature), `name`, `color` (one of twelve, chosen by the id, so it never changes) and `assignedToUserId` (absent if unassigned). A polygon of at most 2 units is left out. A tile without polygons is 204.",
    allow: "everyone",
    scope: "territories:read",
    path: TilePath,
    ignoredQuery: ["page", "pageSize"],
    mayBeEmpty: true,
    revalidated: true,
    mediaType: VECTOR_TILE_TYPE,
    response: VectorTile,
  },
  ({ context, caller, path, validator }) => territoryTile(context, caller, path, validator),
);
