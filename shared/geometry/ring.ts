/**
 * The area inside a ring of `[lng, lat]` points, by the even-odd rule, with its boundary. The ring is planar: an edge is a straight line in
 * degrees and never crosses the 180th meridian.
 */
import { orient2d } from "robust-predicates";

export type Ring = readonly (readonly [lng: number, lat: number])[];

/** The edges of a box in degrees. minLng is not greater than maxLng. */
export type PlainBox = readonly [minLng: number, minLat: number, maxLng: number, maxLat: number];

/**
 * Maximum average number of bands that list the same edge. Above it, the ring gets fewer bands, so that the lists of a ring with 5 000
 * points need at most 200 KB.
 */
const ENTRIES_PER_EDGE = 8;

/**
 * Tests whether points are inside a ring. Each band of latitudes lists its edges, so that a test compares only a few. The predicates are
 * exact for coordinates that are 0 or whose absolute value is at least 1e-140, so a point on an edge is always recognised.
 */
export class RingArea {
  readonly box: PlainBox;
  readonly size: number;
  // Each edge goes from its lower point (x1, y1) to its upper point (x2, y2).
  readonly #x1: Float64Array;
  readonly #y1: Float64Array;
  readonly #x2: Float64Array;
  readonly #y2: Float64Array;
  readonly #bands: Bands;

  /** @param ring at least one point. The last point may repeat the first one. */
  constructor(ring: Ring) {
    const lngs = Float64Array.from(ring, ([lng]) => lng);
    const lats = Float64Array.from(ring, ([, lat]) => lat);
    this.size = ring.length;
    this.box = boxOf(lngs, lats);
    [this.#x1, this.#y1, this.#x2, this.#y2] = edgesOf(lngs, lats);
    this.#bands = bandsOf(this.#y1, this.#y2);
  }

  /** True also on the boundary. False if a coordinate is NaN. */
  contains(lng: number, lat: number): boolean {
    const [minLng, minLat, maxLng, maxLat] = this.box;
    if (!(lat >= minLat && lat <= maxLat && lng >= minLng && lng <= maxLng)) return false;
    const { starts, edges, scale } = this.#bands;
    const band = Math.floor((lat - minLat) * scale);
    const end = starts[band + 1] ?? 0;
    let isInside = false;
    for (let at = starts[band] ?? 0; at < end; at++) {
      const edge = edges[at] ?? 0;
      const y1 = this.#y1[edge] ?? 0;
      const y2 = this.#y2[edge] ?? 0;
      if (lat < y1 || lat > y2) continue;
      const x1 = this.#x1[edge] ?? 0;
      const x2 = this.#x2[edge] ?? 0;
      if (lng > x1 && lng > x2) continue;
      // The sign is negative if the point is left of the edge, because the y axis of the library points downwards.
      const side = lng < x1 && lng < x2 ? -1 : orient2d(x1, y1, x2, y2, lng, lat);
      if (side === 0) return true;
      // An odd number of edges right of the point means inside. The upper end of an edge is left out, because a vertex would otherwise be
      // counted twice.
      if (side < 0 && lat < y2) isInside = !isInside;
    }
    return isInside;
  }

  /** Returns the indexes of edges with a point in the box or on its boundary, among all or the given edges. */
  edgesIn(box: PlainBox, among: readonly number[] = Array.from({ length: this.size }, (_, edge) => edge)): number[] {
    return among.filter((edge) => this.#meets(edge, box));
  }

  #meets(edge: number, [west, south, east, north]: PlainBox): boolean {
    const [x1, y1] = [this.#x1[edge] ?? 0, this.#y1[edge] ?? 0];
    const [x2, y2] = [this.#x2[edge] ?? 0, this.#y2[edge] ?? 0];
    if (y2 < south || y1 > north || (x1 < west && x2 < west) || (x1 > east && x2 > east)) return false;
    // If the line of the edge misses the box, all corners of the box are on the same side of the line.
    const side = Math.sign(orient2d(x1, y1, x2, y2, west, south));
    return (
      side === 0 ||
      side !== Math.sign(orient2d(x1, y1, x2, y2, east, south)) ||
      side !== Math.sign(orient2d(x1, y1, x2, y2, east, north)) ||
      side !== Math.sign(orient2d(x1, y1, x2, y2, west, north))
    );
  }
}

function boxOf(lngs: Float64Array, lats: Float64Array): PlainBox {
  return [least(lngs), least(lats), most(lngs), most(lats)];
}

const least = (values: Float64Array): number => values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
const most = (values: Float64Array): number => values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);

type Edges = [x1: Float64Array, y1: Float64Array, x2: Float64Array, y2: Float64Array];

function edgesOf(lngs: Float64Array, lats: Float64Array): Edges {
  const size = lngs.length;
  const edges: Edges = [new Float64Array(size), new Float64Array(size), new Float64Array(size), new Float64Array(size)];
  for (let from = 0; from < size; from++) {
    const to = (from + 1) % size;
    const isUpward = (lats[from] ?? 0) <= (lats[to] ?? 0);
    const [low, high] = isUpward ? [from, to] : [to, from];
    for (const [column, value] of [lngs[low], lats[low], lngs[high], lats[high]].entries()) {
      const values = edges[column];
      if (values !== undefined) values[from] = value ?? 0;
    }
  }
  return edges;
}

interface Bands {
  /** Number of bands per degree of latitude. */
  readonly scale: number;
  /** The index of each band's first edge in `edges`, and the end of the last band. */
  readonly starts: Uint32Array;
  readonly edges: Uint32Array;
}

function bandsOf(y1: Float64Array, y2: Float64Array): Bands {
  const size = y1.length;
  const bottom = least(y1);
  const height = most(y2) - bottom;
  let count = size;
  let scale = scaleOf(count, height);
  const bandAt = (y: number): number => Math.floor((y - bottom) * scale);
  const entriesOf = (): number => {
    let entries = 0;
    for (let edge = 0; edge < size; edge++) entries += 1 + bandAt(y2[edge] ?? 0) - bandAt(y1[edge] ?? 0);
    return entries;
  };
  while (count > 1 && entriesOf() > ENTRIES_PER_EDGE * size) {
    count >>>= 1;
    scale = scaleOf(count, height);
  }
  // Because of rounding, the last band may have the number `count`, `count` - 1 or 0, so it is computed here. One more element is the end
  // of the last band.
  const starts = new Uint32Array(bandAt(bottom + height) + 2);
  const visit = (work: (band: number, edge: number) => void): void => {
    for (let edge = 0; edge < size; edge++) {
      const last = bandAt(y2[edge] ?? 0);
      for (let band = bandAt(y1[edge] ?? 0); band <= last; band++) work(band, edge);
    }
  };
  visit((band) => {
    starts[band + 1] = (starts[band + 1] ?? 0) + 1;
  });
  for (let band = 1; band < starts.length; band++) starts[band] = (starts[band] ?? 0) + (starts[band - 1] ?? 0);
  const edges = new Uint32Array(starts.at(-1) ?? 0);
  const next = starts.slice();
  visit((band, edge) => {
    edges[next[band] ?? 0] = edge;
    next[band] = (next[band] ?? 0) + 1;
  });
  return { scale, starts, edges };
}

/** 0 if the latitudes are too close together for the division. Then all edges are in one band. */
function scaleOf(count: number, height: number): number {
  const scale = count / height;
  return Number.isFinite(scale) ? scale : 0;
}
