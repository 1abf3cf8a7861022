/** Distances on the ground. */
import { latitudesWithin, metersBetween } from "../../../shared/geometry/distance.ts";

export type Position = readonly [lng: number, lat: number];

export const metresBetween = ([lng, lat]: Position, [toLng, toLat]: Position): number =>
  metersBetween({ lng, lat }, toLat, toLng);

/** Returns a circle on the ground around a center. A map draws it to show the accuracy of a measured position. */
export function ringAround([lng, lat]: Position, metres: number): number[][] {
  const degrees = latitudesWithin(metres);
  return Array.from({ length: 49 }, (_, i) => {
    const angle = (i / 48) * 2 * Math.PI;
    return [lng + (degrees * Math.cos(angle)) / Math.cos((lat * Math.PI) / 180), lat + degrees * Math.sin(angle)];
  });
}
