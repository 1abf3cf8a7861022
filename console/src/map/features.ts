/** Turns positions and territories into GeoJSON and bounding boxes for the map. */
import type { Territory } from "canvassing-client/api";
import type { Feature, FeatureCollection } from "geojson";

export type Bounds = readonly [west: number, south: number, east: number, north: number];

export const point = (lng: number, lat: number, properties: Record<string, unknown> = {}): Feature => ({
  type: "Feature",
  properties,
  geometry: { type: "Point", coordinates: [lng, lat] },
});

export const area = (ring: readonly number[][]): Feature => ({
  type: "Feature",
  properties: {},
  geometry: { type: "Polygon", coordinates: [closed(ring)] },
});

export const collection = (features: Feature[]): FeatureCollection => ({ type: "FeatureCollection", features });

/**
 * Returns a point with the name of each territory, at the middle of its upper edge. The names are not in the tiles, because a territory in
 * several tiles would then show its name several times.
 */
export const territoryNames = (territories: readonly Territory[]): FeatureCollection =>
  collection(
    territories.flatMap(({ name, polygon }) => {
      const box = boundsOf(polygon.map(([lng = 0, lat = 0]) => [lng, lat] as const));
      if (box === undefined) return [];
      const [west, , east, north] = box;
      return [point((west + east) / 2, north, { name })];
    }),
  );

/**
 * Returns the polygon as a closed ring. GeoJSON requires that the last position repeats the first one, but the service stores a polygon as
 * it was sent.
 */
export function closed(polygon: readonly number[][]): number[][] {
  const [first, last] = [polygon.at(0), polygon.at(-1)];
  if (first === undefined || last === undefined) return [];
  return first[0] === last[0] && first[1] === last[1] ? [...polygon] : [...polygon, first];
}

/** Returns the smallest box around all positions. Returns undefined if there are no positions. */
export function boundsOf(positions: Iterable<readonly [lng: number, lat: number]>): Bounds | undefined {
  let [west, south, east, north] = [180, 90, -180, -90];
  for (const [lng, lat] of positions) {
    west = Math.min(west, lng);
    east = Math.max(east, lng);
    south = Math.min(south, lat);
    north = Math.max(north, lat);
  }
  return west > east ? undefined : [west, south, east, north];
}
