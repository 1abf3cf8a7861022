/** GET /api/prospects/tiles/{z}/{x}/{y}: returns a vector tile of the map with the prospects that match the filters. */
import { streamBytes } from "#shared/http/streaming.ts";
import { prospectTile, TILE_CELLS, TILE_GZIP_LEVEL, TILE_PINS_MAX } from "#shared/map/prospect-tile.ts";
import { TilePath, VECTOR_TILE_TYPE, VectorTile } from "#shared/map/tile.ts";
import { ProspectFilter, paging } from "#shared/prospects/filter.ts";

export const handler = streamBytes(
  {
    summary: "Get a map tile of prospects",
    description: `A vector tile (Mapbox Vector Tile 2.1, extent 4096) with the matching prospects that the caller may see. Accepts the filters of the list, and ignores \`page\` and \`pageSize\`. Each prospect with coordinates is in exactly one tile of a zoom.\n\nThe layer \`pins\` has one point for each prospect, with \`id\` (also as the id of the feature), \`status\` (absent without a status) and \`color\`. If the tile has more than ${TILE_PINS_MAX} prospects, the layer \`clusters\` contains the cells of a grid of ${TILE_CELLS} by ${TILE_CELLS}, and \`pins\` only prospects that are alone in their cell. A cluster is at the centre of its prospects. It has \`key\`, \`count\`, the value and the colour of its most frequent status (\`status\`, \`color\`), and the count of each status (\`status_<id>\`, \`status_none\`). The one feature of the layer \`meta\` has \`total\`: the number of pins and the counts of all clusters add up to it. A tile without prospects is 204.`,
    allow: "everyone",
    scope: "prospects:read",
    path: TilePath,
    query: ProspectFilter,
    ignoredQuery: paging,
    mayBeEmpty: true,
    revalidated: true,
    mediaType: VECTOR_TILE_TYPE,
    response: VectorTile,
  },
  ({ context, caller, path, query, validator }) => prospectTile(context, caller, path, query, validator),
  { gzipLevel: TILE_GZIP_LEVEL },
);
