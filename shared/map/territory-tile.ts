/** Vector tiles with the polygons of territories. */
import type { Caller } from "#shared/auth/caller.ts";
import { cachePerTable } from "#shared/cache.ts";
import { readHead } from "#shared/company-index/manifest.ts";
import type { ReadContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { clipped, doubleArea, type PlanePoint, type PlaneRing, simplified } from "#shared/geometry/clip.ts";
import { mapY, mercatorX } from "#shared/geometry/mercator.ts";
import { type PlainBox, plainBoxOf, type Ring, unwrapped } from "#shared/geometry/ring.ts";
import { MOST_CROSSINGS, untangled } from "#shared/geometry/untangle.ts";
import { fingerprint, unconditional, type Validator } from "#shared/http/etag.ts";
import { EXTENT, type Tile } from "#shared/map/tile.ts";
import { Layer, metaLayer, type Position, vectorTile } from "#shared/map/vector-tile.ts";
import { MultisetDigest } from "#shared/prospects/list/multiset-digest.ts";
import { unpackPolygon } from "#shared/reference/polygon.ts";
import { StoredTerritory } from "#shared/territories/territories.ts";

/** Polygons are drawn this many units of the tile beyond its edges, so that the cut edges are not visible. */
export const BUFFER = 64;
/** Maximum distance of a polygon from its simplified form, in units of the tile: a quarter of a pixel if the tile has 512. */
const TOLERANCE = 2;

/**
 * Maximum work for a tile: 1 for each point of a polygon, and WORK_PER_POSITION for each point of its simplified form. It takes about half
 * a second of processor time, and suffices for 5 000 small polygons of 500 points.
 */
const TILE_WORK = 12_000_000;
const WORK_PER_POSITION = 60;

/** The id of a territory determines its colour, so the colour never changes. */
const colors = [
  ...["#2563EB", "#DC2626", "#059669", "#D97706", "#7C3AED", "#DB2777"],
  ...["#0891B2", "#65A30D", "#9333EA", "#EA580C", "#0D9488", "#4F46E5"],
] as const;

/** Undefined if no polygon is in the tile. */
export async function territoryTile<Current = never>(
  context: ReadContext,
  { companyId }: Caller,
  tile: Tile,
  validator: Validator<Current> = unconditional,
): Promise<Uint8Array | Current | undefined> {
  const all = await territoryShapes(context, companyId);
  const shapes = all.filter((shape) => leftsOf(shape, tile).length > 0);
  const digest = new MultisetDigest();
  for (const { id, version } of shapes) digest.add(id, version);
  const current = fingerprint("territory tile 2", companyId, tile.z, tile.x, tile.y, shapes.length, ...digest.sums);
  const notModified = validator.check(current, context.clock.now());
  if (notModified !== undefined) return notModified;
  validator.tag(current);
  return tileOfShapes(shapes, tile);
}

/** A polygon that would exceed the maximum work is drawn as its box, so that the tile still shows the other territories. */
export function tileOfShapes(shapes: readonly Shape[], tile: Tile): Uint8Array | undefined {
  const drawn = new Map<Shape, Position[][]>();
  let [work, boxes] = [0, 0];
  for (const shape of shapes.toSorted((a, b) => a.points - b.points || a.id - b.id)) {
    const simple = work + shape.points > TILE_WORK || isAround(shape) ? undefined : simplifiedRing(shape, tile);
    work += (simple === undefined ? 0 : shape.points) + WORK_PER_POSITION * (simple?.length ?? 0);
    const rings = simple === undefined || work > TILE_WORK ? undefined : ringsIn(tile, shape, simple);
    drawn.set(shape, rings ?? ringsIn(tile, shape, onWorld(cornersOf(shape.box), tile)) ?? []);
    if (rings === undefined) boxes++;
  }
  const layer = new Layer("territories");
  for (const shape of shapes) {
    const { id, name, assignedToUserId } = shape;
    const rings = drawn.get(shape) ?? [];
    if (rings.length === 0) continue;
    const assignee = assignedToUserId === null ? {} : { assignedToUserId };
    layer.addPolygon(rings, { id, name, color: colors[id % colors.length] ?? colors[0], ...assignee }, id);
  }
  if (layer.isEmpty) return undefined;
  return vectorTile(boxes > 0 ? [layer, metaLayer({ boxes })] : [layer]);
}

/** True if the polygon is wider than the world, so that parts of it would overlap on the map. */
const isAround = ({ box: [west, , east] }: Pick<Shape, "box">): boolean => east - west > 360;

const cornersOf = ([west, south, east, north]: PlainBox): Ring => [
  [west, south],
  [east, south],
  [east, north],
  [west, north],
];

/**
 * Returns how far the tile is from the western edge of the world, in units of the tile. A polygon across the 180th meridian lies on both
 * sides of the world, and may have two distances. Empty if the polygon is too small to be visible, or elsewhere.
 */
function leftsOf({ box: [west, south, east, north] }: Pick<Shape, "box">, { z, x, y }: Tile): number[] {
  const units = 2 ** z * EXTENT;
  const [left, right] = [mercatorX(west) * units, mercatorX(east) * units];
  const [top, bottom] = [mapY(north) * units, mapY(south) * units];
  if (Math.max(right - left, bottom - top) <= TOLERANCE) return [];
  if (top > (y + 1) * EXTENT + BUFFER || bottom < y * EXTENT - BUFFER) return [];
  return [x * EXTENT, x * EXTENT + units].filter(
    (from) => left <= from + EXTENT + BUFFER && right >= from - BUFFER && (from === x * EXTENT || east > 180),
  );
}

/** Returns the ring in units of the tile, counted from the north-western corner of the world. */
function onWorld(ring: Ring, { z }: Tile): PlanePoint[] {
  const units = 2 ** z * EXTENT;
  return ring.map(([lng, lat]): PlanePoint => [mercatorX(lng) * units, mapY(lat) * units]);
}

/** Simplifies the ring in coordinates of the whole map, before it is clipped, so that its parts in neighbouring tiles meet. */
function simplifiedRing({ polygon }: Pick<Shape, "polygon">, tile: Tile): PlanePoint[] {
  const ring = unpackPolygon(polygon);
  return simplified(onWorld(unwrapped(ring) ?? ring, tile), TOLERANCE);
}

/**
 * Returns outer rings, clockwise on the screen, each followed by its holes, counter-clockwise. Only a polygon that crosses itself or the
 * 180th meridian has several outer rings. Undefined if a ring with many points has no area to draw.
 */
function ringsIn(tile: Tile, shape: Pick<Shape, "box">, ring: PlaneRing): Position[][] | undefined {
  const rings: Position[][] = [];
  for (const left of leftsOf(shape, tile)) {
    const areas = untangled(ring.map(([px, py]): PlanePoint => [px - left, py - tile.y * EXTENT]));
    if (areas.length === 0 && ring.length > MOST_CROSSINGS) return undefined;
    for (const { outer, holes } of areas) {
      const [around, ...inner] = [outer, ...holes].map(clockwise);
      if (around !== undefined) rings.push(around, ...inner.flatMap((hole) => (hole ? [hole.toReversed()] : [])));
    }
  }
  return rings;
}

/** Returns the part of the ring in the tile, in whole units and clockwise on the screen. Undefined if this part has no area. */
function clockwise(whole: PlaneRing): Position[] | undefined {
  const rounded = clipped(whole, -BUFFER, EXTENT + BUFFER).map(
    ([px, py]): Position => [Math.round(px), Math.round(py)],
  );
  const ring = rounded.filter(([px, py], at) => {
    const [lastX, lastY] = rounded.at(at - 1) ?? [];
    return px !== lastX || py !== lastY;
  });
  const area = doubleArea(ring);
  if (ring.length < 3 || area === 0) return undefined;
  return area > 0 ? ring : ring.toReversed();
}

/** A territory to draw. Its polygon is packed, because all polygons of a company may not fit into memory. */
export interface Shape extends Pick<StoredTerritory, "id" | "version" | "name" | "assignedToUserId" | "polygon"> {
  /** Its maxLng is greater than 180 if the polygon crosses the 180th meridian. */
  readonly box: PlainBox;
  readonly points: number;
}

/** Approximate bytes of a shape without its polygon. */
const SHAPE_BYTES = 500;

/** Caches the territories of companies. A typical company has less than 100 KB of packed polygons, and the largest one about 60 MB. */
const allShapes = cachePerTable<readonly Shape[]>({
  maxBytes: 96_000_000,
  bytesOf: (shapes) => shapes.reduce((sum, { polygon }) => sum + polygon.length + SHAPE_BYTES, SHAPE_BYTES),
});

/** Returns the territories with a polygon. The head of the company index shows whether the cached ones are current. */
async function territoryShapes({ table }: Pick<ReadContext, "table">, companyId: number): Promise<readonly Shape[]> {
  // The version is read before the territories. They may then be newer than the version, but never older.
  const { logId, territoriesVersion } = readHead(await table.get(keys.indexHead(companyId)));
  const key = `${companyId} ${logId}`;
  const known = allShapes(table).get(key);
  if (known?.version === territoriesVersion) return known.value;
  const shapes: Shape[] = [];
  for await (const item of table.query(keys.territories(companyId))) {
    const shape = shapeOf(StoredTerritory.parse(item));
    if (shape.points > 0) shapes.push(shape);
  }
  allShapes(table).set(key, territoriesVersion, shapes);
  return shapes;
}

export function shapeOf({ id, version, name, assignedToUserId, polygon }: Omit<Shape, "box" | "points">): Shape {
  const ring = unpackPolygon(polygon);
  return { id, version, name, assignedToUserId, polygon, box: plainBoxOf(ring), points: ring.length };
}
