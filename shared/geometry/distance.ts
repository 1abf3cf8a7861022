/** Distances on the earth as a sphere. The error is below 0.6 %, because the earth is slightly flattened. */

/** The mean radius (IUGG). */
const EARTH_METERS = 6_371_008.8;
const RADIANS = Math.PI / 180;

/** The maximum distance of two points: half of the circumference. */
export const FARTHEST_METERS = Math.PI * EARTH_METERS;

interface LatLng {
  readonly lat: number;
  readonly lng: number;
}

/** The great-circle distance, by the haversine formula. */
export function metersBetween(from: LatLng, lat: number, lng: number): number {
  const sinLat = Math.sin(((lat - from.lat) * RADIANS) / 2);
  const sinLng = Math.sin(((lng - from.lng) * RADIANS) / 2);
  const h = sinLat * sinLat + Math.cos(from.lat * RADIANS) * Math.cos(lat * RADIANS) * sinLng * sinLng;
  return 2 * EARTH_METERS * Math.asin(Math.min(1, Math.sqrt(h)));
}

/** A margin for distances (as a share) and angles, so that rounding never excludes a point of the circle. */
const SPARE = 1e-9;

/** Returns the box around a circle: minLng, minLat, maxLng, maxLat. If minLng is greater than maxLng, it crosses the 180th meridian. */
export function boxAround({ lat, lng }: LatLng, meters: number): [number, number, number, number] {
  const angle = (meters / EARTH_METERS) * (1 + SPARE) + SPARE;
  const [south, north] = [Math.max(-90, lat - angle / RADIANS), Math.min(90, lat + angle / RADIANS)];
  if (south === -90 || north === 90) return [-180, south, 180, north];
  // The westernmost and easternmost points of a circle on a sphere are not at the latitude of its centre.
  const width = Math.asin(Math.min(1, Math.sin(angle) / Math.cos(lat * RADIANS))) / RADIANS + SPARE;
  if (width >= 180) return [-180, south, 180, north];
  const [west, east] = [lng - width, lng + width];
  return [west < -180 ? west + 360 : west, south, east > 180 ? east - 360 : east, north];
}

/** The maximum difference in latitude, in degrees, between two points that are at most `meters` apart. */
export const latitudesWithin = (meters: number): number => (meters / EARTH_METERS / RADIANS) * (1 + SPARE);
