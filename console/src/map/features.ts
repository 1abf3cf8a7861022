/** Turns pins, clusters and territories into GeoJSON for the layers of the map. */
import type { Cluster, MapPin, Status, Territory } from "canvassing-client/api";
import type { Feature, FeatureCollection } from "geojson";
import type { Bounds } from "./canvas.tsx";

/** The colour of prospects without a status, as in the API. */
const NO_STATUS = "#9CA3AF";

const collection = (features: Feature[]): FeatureCollection => ({ type: "FeatureCollection", features });

const point = (at: { lng: number; lat: number }, properties: Record<string, unknown>): Feature => ({
  type: "Feature",
  properties,
  geometry: { type: "Point", coordinates: [at.lng, at.lat] },
});

export const pinFeatures = (pins: readonly MapPin[]): FeatureCollection =>
  collection(pins.map((pin) => point(pin, { id: pin.id, color: pin.statusColor, count: 1 })));

/** A cluster has the colour of its most frequent status. */
export function clusterFeatures(clusters: readonly Cluster[], statuses: readonly Status[]): FeatureCollection {
  const colors = new Map(statuses.map(({ id, color }) => [id, color]));
  const colorOf = ({ statusColor, byStatus = [] }: Cluster): string => {
    const [most] = byStatus.toSorted((a, b) => b.count - a.count);
    return statusColor ?? colors.get(most?.statusId ?? 0) ?? NO_STATUS;
  };
  return collection(
    clusters.map((cluster) =>
      point(cluster, { id: cluster.id ?? null, color: colorOf(cluster), count: cluster.count }),
    ),
  );
}

export function territoryFeatures(territories: readonly Territory[]): FeatureCollection {
  return collection(
    territories
      .filter(({ polygon }) => polygon.length >= 3)
      .map(({ id, name, polygon }) => ({
        type: "Feature",
        properties: { id, name },
        geometry: { type: "Polygon", coordinates: [closed(polygon)] },
      })),
  );
}

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
