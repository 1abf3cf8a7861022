/** Distances on the ground. */
export type Position = readonly [lng: number, lat: number];

const EARTH_METRES = 6_371_000;
const RADIANS = Math.PI / 180;

/** The great-circle distance (haversine formula). */
export function metresBetween([lngA, latA]: Position, [lngB, latB]: Position): number {
  const half = (degrees: number): number => Math.sin((degrees * RADIANS) / 2) ** 2;
  const part = half(latB - latA) + Math.cos(latA * RADIANS) * Math.cos(latB * RADIANS) * half(lngB - lngA);
  return 2 * EARTH_METRES * Math.asin(Math.sqrt(part));
}

/** A ring of positions around a center, for the accuracy of a measured position. */
export function ringAround([lng, lat]: Position, metres: number): number[][] {
  const degrees = metres / EARTH_METRES / RADIANS;
  return Array.from({ length: 49 }, (_, i) => {
    const angle = (i / 48) * 2 * Math.PI;
    return [lng + (degrees * Math.cos(angle)) / Math.cos(lat * RADIANS), lat + degrees * Math.sin(angle)];
  });
}
