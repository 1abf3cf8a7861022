/** The tiles of web maps (Web Mercator): 2^z columns and rows at zoom level z. At each level, every point is in exactly one tile. */
import * as z from "zod/mini";
import type { Box } from "#shared/company-index/criteria.ts";
import { explain } from "#shared/documentation.ts";
import { cellAt, latAt, lngAt, MAX_ZOOM, mercatorX, mercatorY } from "#shared/geometry/mercator.ts";

/** Width and height of a tile in its own units. A position in a tile is a whole number of units on each axis. */
export const EXTENT = 4_096;

export const VECTOR_TILE_TYPE = "application/vnd.mapbox-vector-tile";

export const Zoom = z.pipe(
  z.string().check(z.regex(/^[0-9]{1,2}$/, { error: `must be a whole number from 0 to ${MAX_ZOOM}` })),
  z.pipe(z.transform(Number), z.int().check(z.maximum(MAX_ZOOM))),
);
const Column = z.pipe(
  z.string().check(z.regex(/^[0-9]{1,7}$/, { error: "must be a whole number" })),
  z.transform(Number),
);
/** API Gateway allows no fixed text after a path parameter, so the parameter of the row includes `.mvt`. */
const RowFile = z.pipe(
  z.string().check(z.regex(/^[0-9]{1,7}\.mvt$/, { error: "must be a whole number, followed by .mvt" })),
  z.transform((name) => Number.parseInt(name, 10)),
);

const onMap = (axis: "x" | "y") =>
  z.refine<Record<"x" | "y" | "z", number>>((tile) => tile[axis] < 2 ** tile.z, {
    path: [axis],
    error: "must be less than 2 to the power of z",
  });

export const TilePath = z.object({ z: Zoom, x: Column, y: RowFile }).check(onMap("x"), onMap("y"));
export type Tile = z.output<typeof TilePath>;

export const VectorTile = z.string();
z.globalRegistry.add(VectorTile, {
  id: "VectorTile",
  description: "A vector tile of the Mapbox Vector Tile specification 2.1, a Protocol Buffers message.",
  format: "binary",
});

const number = (description: string, example: number, maximum: number) => ({
  ...{ description, example },
  schema: { type: "integer", minimum: 0, maximum },
});
/* @__PURE__ */ explain([TilePath], () => ({
  fields: {
    z: number(`The zoom, from 0 to ${MAX_ZOOM}.`, 10, MAX_ZOOM),
    x: number("The column, from west to east, from 0 to 2^z - 1.", 213, 2 ** MAX_ZOOM - 1),
    y: {
      description: "The row, from north to south, from 0 to 2^z - 1, followed by `.mvt`.",
      example: "388.mvt",
      schema: { type: "string", pattern: "^[0-9]{1,7}\\.mvt$" },
    },
  },
}));

/** Margin in degrees. Rounding moves a point over the edge of a tile by less than this. */
const ROUNDING = 1e-9;

/** Returns a box with all points of the tile, and few others, which `contains` excludes. The top and bottom rows reach to the poles. */
export function boxAround({ z: zoom, x, y }: Tile): Box {
  const tiles = 2 ** zoom;
  return [
    Math.max(-180, lngAt(x / tiles) - ROUNDING),
    y === tiles - 1 ? -90 : latAt((y + 1) / tiles) - ROUNDING,
    Math.min(180, lngAt((x + 1) / tiles) + ROUNDING),
    y === 0 ? 90 : latAt(y / tiles) + ROUNDING,
  ];
}

/** A tile includes its western and northern edge only. */
export function contains({ z: zoom, x, y }: Tile, lat: number, lng: number): boolean {
  const tiles = 2 ** zoom;
  return cellAt(mercatorX(lng), tiles) === x && cellAt(mercatorY(lat), tiles) === y;
}

/** Returns the position of a point in its tile, counted from the north-western corner. Each number is from 0 to EXTENT - 1. */
export function positionIn({ z: zoom, x, y }: Tile, lat: number, lng: number): readonly [x: number, y: number] {
  const tiles = 2 ** zoom;
  return [cellAt(mercatorX(lng) * tiles - x, EXTENT), cellAt(mercatorY(lat) * tiles - y, EXTENT)];
}
