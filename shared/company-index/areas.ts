/** The areas on the map by which a search index is filtered. */
import {
  type Area,
  type AreaRange,
  type Box,
  insideBox,
  type LatLng,
  meetsBox,
} from "#shared/company-index/criteria.ts";
import { type CellBox, geohashRanges, rangesOfArea } from "#shared/company-index/geohash.ts";
import { boxAround, metersBetween } from "#shared/geometry/distance.ts";
import { type Ring, RingArea } from "#shared/geometry/ring.ts";

/** Maximum number of geohash cells on the boundary. With more cells, a search tests fewer rows, but looks up more ranges of geohashes. */
const EDGE_CELLS = 512;
/**
 * Maximum number of tests of an edge against a cell. If a polygon needs more, the cells cover more area outside it. A ring of 5 000 points
 * that does not cross itself needs fewer.
 */
const EDGE_TESTS = 120_000;

export const emptyArea: Area = { box: null, ranges: [], contains: () => false };

const RANGE_BYTES = 60;

/** An area whose `bytes` of memory grow while points are tested. */
export interface PolygonArea extends Area {
  readonly bytes: number;
}

/** The edges of a ring that may cross a cell. Undefined means all edges. */
interface Crossing {
  readonly edges?: Uint32Array;
}

/** Uses the even-odd rule. The boundary is part of the area. A ring without points is an empty area. */
export function polygonArea(ring: Ring): PolygonArea {
  if (ring.length === 0) return { ...emptyArea, bytes: 0 };
  const area = new RingArea(ring);
  let ranges: readonly AreaRange[] | undefined;
  return {
    box: area.box,
    // Computed at the first use, because some callers only test points.
    get ranges() {
      ranges ??= rangesOf(area);
      return ranges;
    },
    get bytes() {
      return area.bytes + RANGE_BYTES * (ranges?.length ?? 0);
    },
    contains: (lat, lng) => area.contains(lng, lat),
  };
}

function rangesOf(area: RingArea): AreaRange[] {
  let tests = 0;
  return rangesOfArea<Crossing>({}, EDGE_CELLS, (cell, known) => {
    if (!meetsBox({ box: cell }, area.box)) return "outside";
    if (contains(cell, area.box) || tests > EDGE_TESTS) return known;
    tests += known.edges?.length ?? area.size;
    const edges = area.edgesIn(cell, known.edges);
    if (edges.length > 0) return { edges };
    const [west, south, east, north] = cell;
    return area.contains((west + east) / 2, (south + north) / 2) ? "inside" : "outside";
  });
}

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
