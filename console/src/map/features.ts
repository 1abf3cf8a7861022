/** Turns positions and territories into GeoJSON and boxes for the map. */
import type { Territory } from "canvassing-client/api";
import type { Feature, FeatureCollection } from "geojson";
import type { Bounds } from "./canvas.tsx";

export const point = (lng: number, lat: number, properties: Record<string, unknown> = {}): Feature => ({
  type: "Feature",
  properties,
  geometry: { type: "Point", coordinates: [lng, lat] },
});

export const collection = (features: Feature[]): FeatureCollection => ({ type: "FeatureCollection", features });

/** The names of the territories, each in the middle of its box. Tiles would repeat the name of a territory that several tiles show. */
export const territoryNames = (territories: readonly Territory[]): FeatureCollection =>
  collection(
    territories.flatMap(({ name, polygon }) => {
      const box = boundsOf(polygon.map(([lng = 0, lat = 0]) => [lng, lat] as const));
      if (box === undefined) return [];
      const [west, south, east, north] = box;
      return [point((west + east) / 2, (south + north) / 2, { name })];
    }),
  );

/** Territories are stored as they were sent, but GeoJSON wants the first position again at the end. */
export function closed(polygon: readonly number[][]): number[][] {
  const [first, last] = [polygon.at(0), polygon.at(-1)];
  if (first === undefined || last === undefined) return [];
  return first[0] === last[0] && first[1] === last[1] ? [...polygon] : [...polygon, first];
}

/** The smallest box around all positions, or undefined if there are none. */
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
