/** The areas on the map by which a company index can be filtered. */
import { type Area, type Box, insideBox, type LatLng, type Places } from "#shared/company-index/criteria.ts";
import { boxAround, metersBetween } from "#shared/geometry/distance.ts";
import { type Ring, RingArea } from "#shared/geometry/ring.ts";

export const emptyArea: Area = { box: null, contains: () => false };

/** An area that caches, for each tested segment, which rows are inside. `bytes` is its size in memory, and grows with this cache. */
export interface PolygonArea extends Area {
  readonly bytes: number;
  readonly rowsInside: (places: Places) => Uint32Array;
}

/** Returns the area of a ring by the even-odd rule. The boundary is a part of the area. A ring without points is an empty area. */
export function polygonArea(ring: Ring): PolygonArea {
  if (ring.length === 0)
    return { ...emptyArea, bytes: 0, rowsInside: ({ lat }) => new Uint32Array((lat.length + 31) >>> 5) };
  const area = new RingArea(ring);
  const known = new WeakMap<Places, Uint32Array>();
  let bytes = area.bytes;
  return {
    box: area.box,
    get bytes() {
      return bytes;
    },
    contains: (lat, lng) => area.contains(lng, lat),
    rowsInside: (places) => {
      const inside = known.get(places) ?? area.pointsInside(places.lng, places.lat);
      if (!known.has(places)) bytes += inside.byteLength;
      known.set(places, inside);
      return inside;
    },
  };
}

/** Returns the area of all points within `meters` of a point. It may contain a pole or cross the 180th meridian. */
export function circleArea(center: LatLng, meters: number): Area {
  const box = boxAround(center, meters);
  return {
    box,
    contains: (lat, lng) => insideBox(box, lat, lng) && metersBetween(center, lat, lng) <= meters,
  };
}

/** Returns the area of a box, including the edges. The box crosses the 180th meridian if minLng is greater than maxLng. */
export const boxArea = (box: Box): Area => ({ box, contains: (lat, lng) => insideBox(box, lat, lng) });
