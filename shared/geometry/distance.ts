/** Distances on the surface of the earth, which is taken as a sphere. The error is below 0.6 %, because the earth is slightly flattened. */

/** The mean radius of the earth in metres (IUGG). */
const EARTH_METERS = 6_371_008.8;
const RADIANS = Math.PI / 180;

/** Half of the circumference of the earth, which is the maximum distance of two points. */
export const FARTHEST_METERS = Math.PI * EARTH_METERS;

interface LatLng {
  readonly lat: number;
  readonly lng: number;
}

/** Returns the length of the great circle between two points in metres, by the haversine formula. */
export function metersBetween(from: LatLng, lat: number, lng: number): number {
  const sinLat = Math.sin(((lat - from.lat) * RADIANS) / 2);
  const sinLng = Math.sin(((lng - from.lng) * RADIANS) / 2);
  const h = sinLat * sinLat + Math.cos(from.lat * RADIANS) * Math.cos(lat * RADIANS) * sinLng * sinLng;
  return 2 * EARTH_METERS * Math.asin(Math.min(1, Math.sqrt(h)));
}

/**
 * A margin, so that rounding never excludes a point of the circle. Distances are multiplied by 1 + SPARE. `boxAround` also adds SPARE to
 * its angles: to the radius in radians, and to the width in degrees.
 */
const SPARE = 1e-9;

/**
 * Returns a box that contains all points within `meters` of a point: minLng, minLat, maxLng, maxLat. The box crosses the 180th meridian if
 * minLng is greater than maxLng.
 */
export function boxAround({ lat, lng }: LatLng, meters: number): [number, number, number, number] {
  const angle = (meters / EARTH_METERS) * (1 + SPARE) + SPARE;
  const [south, north] = [lat - angle / RADIANS, lat + angle / RADIANS];
  const box = (west: number, east: number): [number, number, number, number] => [
    west,
    Math.max(-90, south),
    east,
    Math.min(90, north),
  ];
  if (south <= -90 || north >= 90) return box(-180, 180);
  // The westernmost and easternmost points of a circle on a sphere are not at the latitude of its centre. Their longitudes therefore need
  // this formula with the sine.
  const width = Math.asin(Math.min(1, Math.sin(angle) / Math.cos(lat * RADIANS))) / RADIANS + SPARE;
  const [west, east] = [lng - width, lng + width];
  if (width >= 180) return box(-180, 180);
  return box(west < -180 ? west + 360 : west, east > 180 ? east - 360 : east);
}

/** Returns the maximum difference in latitude, in degrees, between two points that are at most `meters` apart. */
export const latitudesWithin = (meters: number): number => (meters / EARTH_METERS / RADIANS) * (1 + SPARE);
