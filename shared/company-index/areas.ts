/** The areas on the map by which a search index is filtered. */
import { type Area, type Box, insideBox, type LatLng } from "#shared/company-index/criteria.ts";
import { type CellBox, geohashRanges, rangesOfArea } from "#shared/company-index/geohash.ts";
import { boxAround, metersBetween } from "#shared/geometry/distance.ts";
import { type Ring, RingArea } from "#shared/geometry/ring.ts";

/** Maximum number of geohash cells on the boundary. With more cells, a search tests fewer rows, but looks up more ranges of geohashes. */
const EDGE_CELLS = 512;
/** Maximum number of tests of an edge against a cell. If a polygon needs more, the cells cover more area outside it. */
const EDGE_TESTS = 400_000;

export const emptyArea: Area = { box: null, ranges: [], contains: () => false };

/** The edges of a ring that may cross a cell. Undefined means all edges. */
interface Crossing {
  readonly edges?: readonly number[];
}

/** Uses the even-odd rule. The boundary is part of the area. A ring without points is an empty area. */
export function polygonArea(ring: Ring): Area {
  if (ring.length === 0) return emptyArea;
  const area = new RingArea(ring);
  let tests = 0;
  const test = (cell: CellBox, known: Crossing): "inside" | "outside" | Crossing => {
    if (!overlap(cell, area.box)) return "outside";
    if (contains(cell, area.box) || tests > EDGE_TESTS) return known;
    tests += known.edges?.length ?? area.size;
    const edges = area.edgesIn(cell, known.edges);
    if (edges.length > 0) return { edges };
    const [west, south, east, north] = cell;
    return area.contains((west + east) / 2, (south + north) / 2) ? "inside" : "outside";
  };
  return {
    box: area.box,
    ranges: rangesOfArea<Crossing>({}, EDGE_CELLS, test),
    contains: (lat, lng) => area.contains(lng, lat),
  };
}

const overlap = (a: CellBox, b: CellBox): boolean => a[0] <= b[2] && a[2] >= b[0] && a[1] <= b[3] && a[3] >= b[1];

const contains = (outer: CellBox, inner: CellBox): boolean =>
  outer[0] <= inner[0] && outer[1] <= inner[1] && outer[2] >= inner[2] && outer[3] >= inner[3];

/** Returns the area of all points within `meters` of a point. It may contain a pole or cross the 180th meridian. */
export function circleArea(center: LatLng, meters: number): Area {
  const box = boxAround(center, meters);
  return {
    box,
    ranges: geohashRanges(box),
    contains: (lat, lng) => metersBetween(center, lat, lng) <= meters,
  };
}

/** Returns the inside of a box and its edges. The box crosses the 180th meridian if minLng is greater than maxLng. */
export const boxArea = (box: Box): Area => ({
  box,
  ranges: geohashRanges(box),
  contains: (lat, lng) => insideBox(box, lat, lng),
});
