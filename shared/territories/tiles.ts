/** Vector tiles with the polygons of territories. */
import type { Caller } from "#shared/auth/caller.ts";
import type { ReadContext } from "#shared/context.ts";
import { clipped, doubleArea, type PlanePoint, type PlaneRing, simplified } from "#shared/geometry/clip.ts";
import { mercatorX, mercatorY } from "#shared/geometry/mercator.ts";
import { untangled } from "#shared/geometry/untangle.ts";
import { fingerprint, unconditional, type Validator } from "#shared/http/etag.ts";
import { MultisetDigest } from "#shared/prospects/list/multiset-digest.ts";
import { type Polygon, unpackPolygon } from "#shared/reference/polygon.ts";
import { type Shape, territoryShapes } from "#shared/territories/shapes.ts";
import { EXTENT, type Tile } from "#shared/tiles/tile.ts";
import { Layer, type Position, vectorTile } from "#shared/tiles/vector-tile.ts";

/** Polygons are drawn this many units of the tile beyond its edges, so that the cut edges are not visible. */
export const BUFFER = 64;
/** The distance from a polygon to its simplified form, in units of the tile: a quarter of a pixel if the tile has 512. */
const TOLERANCE = 2;

/** The id of a territory determines its colour, so it never changes. */
const colors = [
  ...["#2563EB", "#DC2626", "#059669", "#D97706", "#7C3AED", "#DB2777"],
  ...["#0891B2", "#65A30D", "#9333EA", "#EA580C", "#0D9488", "#4F46E5"],
] as const;

/** Returns the bytes of the tile. Returns undefined if no polygon is in the tile. */
export async function territoryTile<Current = never>(
  context: ReadContext,
  { companyId }: Caller,
  tile: Tile,
  validator: Validator<Current> = unconditional,
): Promise<Uint8Array | Current | undefined> {
  const all = await territoryShapes(context, companyId);
  const shapes = all.filter((shape) => isVisible(shape, tile));
  const digest = new MultisetDigest();
  for (const { id, version } of shapes) digest.add(id, version);
  const current = fingerprint("territory tile", companyId, tile.z, tile.x, tile.y, shapes.length, ...digest.sums);
  const notModified = validator.check(current, context.clock.now());
  if (notModified !== undefined) return notModified;
  validator.tag(current);
  return tileOfShapes(shapes, tile);
}

export function tileOfShapes(
  shapes: readonly Pick<Shape, "id" | "name" | "assignedToUserId" | "polygon">[],
  tile: Tile,
): Uint8Array | undefined {
  const layer = new Layer("territories");
  for (const { id, name, assignedToUserId, polygon } of shapes) {
    const rings = ringsIn(tile, unpackPolygon(polygon));
    if (rings.length === 0) continue;
    const assignee = assignedToUserId === null ? {} : { assignedToUserId };
    layer.addPolygon(rings, { id, name, color: colors[id % colors.length] ?? colors[0], ...assignee }, id);
  }
  return layer.isEmpty ? undefined : vectorTile([layer]);
}

/** Returns true if the box of the polygon touches the tile or its buffer, and is large enough to be visible. */
function isVisible({ box: [minLng, minLat, maxLng, maxLat] }: Pick<Shape, "box">, { z, x, y }: Tile): boolean {
  const units = 2 ** z * EXTENT;
  const [west, east] = [mercatorX(minLng) * units - x * EXTENT, mercatorX(maxLng) * units - x * EXTENT];
  const [north, south] = [onMap(maxLat) * units - y * EXTENT, onMap(minLat) * units - y * EXTENT];
  const [low, high] = [-BUFFER, EXTENT + BUFFER];
  return (
    west <= high && east >= low && north <= high && south >= low && Math.max(east - west, south - north) > TOLERANCE
  );
}

/** Returns the position from north to south on the map of the world, from 0 to 1. Points near the poles are on the edge of the map. */
const onMap = (lat: number): number => Math.max(0, Math.min(1, mercatorY(lat)));

/**
 * Outer rings, clockwise on the screen, each followed by its holes, counter-clockwise, without a repeated first point. A polygon that does
 * not cross itself has at most one ring in the tile.
 */
function ringsIn({ z, x, y }: Tile, polygon: Polygon): Position[][] {
  const units = 2 ** z * EXTENT;
  // Simplified before it is clipped, in coordinates that all tiles of a zoom level share, so that the parts in neighbouring tiles meet at
  // the common edge.
  const world = polygon.map(([lng, lat]): PlanePoint => [mercatorX(lng) * units, onMap(lat) * units]);
  const inTile = simplified(world, TOLERANCE).map(([px, py]): PlanePoint => [px - x * EXTENT, py - y * EXTENT]);
  return untangled(inTile).flatMap(({ outer, holes }) => {
    const [around, ...inner] = [outer, ...holes].map(clockwise);
    return around === undefined ? [] : [around, ...inner.flatMap((hole) => (hole ? [hole.toReversed()] : []))];
  });
}

/** Undefined if it has no area. */
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
