/**
 * The area inside a ring of `[lng, lat]` points, by the even-odd rule, including its boundary. An edge is a straight line in degrees. It
 * crosses the 180th meridian if its longitudes differ by more than 180 and less than 360 degrees, unless the ring goes around a pole.
 */
import { orient2d } from "robust-predicates";
import { at, doubleAt, uint32At } from "#shared/at.ts";

export type Ring = readonly (readonly [lng: number, lat: number])[];

/** In degrees. minLng is not greater than maxLng. */
export type PlainBox = readonly [minLng: number, minLat: number, maxLng: number, maxLat: number];

const TURN = 360;

/**
 * Returns for each point how often the ring has crossed the 180th meridian eastwards before it, minus how often westwards. Undefined if no
 * edge crosses it, or if the ring goes around a pole.
 */
function turnsOf(ring: Ring): number[] | undefined {
  let turns = 0;
  let isCrossing = false;
  const all = ring.map(([lng], i) => {
    const before = turns;
    const step = stepOf(lng, following(ring, i)[0]);
    isCrossing ||= step !== 0;
    turns += step;
    return before;
  });
  return isCrossing && turns === 0 ? all : undefined;
}

/** Returns the point after the one at `index`. The first point follows the last one. */
export const following = <Point>(ring: readonly Point[], index: number): Point => at(ring, (index + 1) % ring.length);

/** Returns 1 for an edge that crosses the meridian eastwards, -1 for one that crosses it westwards, and 0 for all others. */
function stepOf(from: number, to: number): -1 | 0 | 1 {
  const width = Math.abs(to - from);
  if (width <= TURN / 2 || width >= TURN) return 0;
  return to < from ? 1 : -1;
}

/**
 * Returns the ring without jumps at the 180th meridian: the westernmost longitude is at least -180 and less than 180, and longitudes beyond
 * the meridian are greater than 180. Undefined if no edge crosses the meridian, or if the ring goes around a pole.
 */
export function unwrapped(ring: Ring): [lng: number, lat: number][] | undefined {
  const turns = turnsOf(ring);
  if (turns === undefined) return undefined;
  const lngs = ring.map(([lng], i) => lng + TURN * at(turns, i));
  const west = lngs.reduce((least, lng) => Math.min(least, lng));
  const shift = -Math.floor((west + TURN / 2) / TURN);
  return ring.map(([lng, lat], i) => [lng + TURN * (at(turns, i) + shift), lat]);
}

/** Some edges of the ring, and a point that is known to be inside or outside the area. */
interface Part {
  /** The edges of the part are at the positions `from` to `end - 1` of `#list`. */
  readonly from: number;
  readonly end: number;
  readonly lng: number;
  readonly lat: number;
  readonly isInside: boolean;
}

/** Bytes of an edge, and the byte offsets of its numbers y1, x2 and y2. The first number is x1. */
const EDGE_BYTES = 32;
const [Y1, X2, Y2] = [8, 16, 24];

/** If a box has at most this many points, each of them is tested by itself. */
const FEW_POINTS = 3;
/** Margin in degrees. Without it, rounding errors could make `#select` omit an edge that is in the box. */
const ROUNDING = 1e-11;

/**
 * Tests whether points are inside a ring. The predicates are exact for coordinates that are 0 or whose absolute value is at least 1e-140,
 * so a point on an edge is always recognised.
 */
export class RingArea {
  /** Unlike other boxes of this type, it may have a minLng above its maxLng. It then crosses the 180th meridian. */
  readonly box: PlainBox;
  /** Four numbers for each edge: its ends (x1, y1) and (x2, y2). A DataView checks each access and is as fast as a typed array. */
  readonly #edges: DataView;
  /** Points outside this box are outside the ring, so they are not compared with edges. */
  readonly #plane: PlainBox;
  /** Numbers of edges: first all of them, then those of each part that `pointsInside` examines. */
  #list: Uint32Array;
  #compared = 0;

  /** The ring must have a point. The last point may repeat the first one. */
  constructor(ring: Ring) {
    const whole = unwrapped(ring);
    this.#edges = edgesOf(ring, whole !== undefined);
    this.box = whole === undefined ? boxOf(ring) : boxOnEarth(boxOf(whole));
    this.#plane = whole === undefined ? this.box : [-180, this.box[1], 180, this.box[3]];
    this.#list = Uint32Array.from({ length: this.#edges.byteLength / EDGE_BYTES }, (_, edge) => edge);
  }

  get bytes(): number {
    return this.#edges.byteLength + this.#list.byteLength;
  }

  /** Number of edges that were examined, for tests. */
  get compared(): number {
    return this.#compared;
  }

  /** True also on the boundary. False if a coordinate is NaN. */
  contains(lng: number, lat: number): boolean {
    return this.#isInPlane(lng, lat) && this.#test(this.#wholeSouthOf(lng), lng, lat) !== "outside";
  }

  #isInPlane(lng: number, lat: number): boolean {
    const [west, south, east, north] = this.#plane;
    return lat >= south && lat <= north && lng >= west && lng <= east;
  }

  /** The part with all edges. Its known point is south of the ring, and therefore outside the area. */
  #wholeSouthOf(lng: number): Part {
    const [, south, , north] = this.#plane;
    return {
      from: 0,
      end: this.#edges.byteLength / EDGE_BYTES,
      lng,
      lat: south - (north - south) / 16 - 1e-7,
      isInside: false,
    };
  }

  /**
   * Returns a bit for each point, 1 if `contains` is true. Divides the points into smaller and smaller boxes, until a box has few points or
   * no edges. The time therefore grows much less than the product of points and edges.
   */
  pointsInside(lngs: Float64Array, lats: Float64Array): Uint32Array {
    const inside = new Uint32Array((lngs.length + 31) >>> 5);
    const points = new Uint32Array(lngs.length);
    let count = 0;
    for (let point = 0; point < lngs.length; point++) {
      if (this.#isInPlane(doubleAt(lngs, point), doubleAt(lats, point))) points[count++] = point;
    }
    const whole = this.#wholeSouthOf(this.#plane[0]);
    this.#divide({ lngs, lats, inside }, points.subarray(0, count), whole);
    this.#list = this.#list.slice(0, whole.end);
    return inside;
  }

  #divide(places: Places, points: Uint32Array, part: Part): void {
    const { lngs, lats, inside } = places;
    const hasEdges = part.end > part.from;
    if (!hasEdges && !part.isInside) return;
    const box = boxAround(places, points);
    const [west, south, east, north] = box;
    const isOnePlace = west === east && south === north;
    const inner = hasEdges && !isOnePlace && points.length > FEW_POINTS ? this.#within(part, box) : undefined;
    if (inner === undefined) {
      const same = hasEdges ? isOnePlace && this.#test(part, west, south) : "inside";
      for (const point of points) {
        if ((same || this.#test(part, doubleAt(lngs, point), doubleAt(lats, point))) === "outside") continue;
        inside[point >>> 5] = uint32At(inside, point >>> 5) | (1 << (point & 31));
      }
      return;
    }
    const isByLng = this.#isSteep(inner, box);
    const [along, from, to] = isByLng ? [lngs, west, east] : [lats, south, north];
    // The mean of two neighbouring floating-point numbers may be rounded up to the greater one. All points would then be in the same half.
    const middle = (from + to) / 2 < to ? (from + to) / 2 : from;
    let low = 0;
    for (let i = 0; i < points.length; i++) {
      const point = uint32At(points, i);
      if (doubleAt(along, point) > middle) continue;
      points[i] = uint32At(points, low);
      points[low++] = point;
    }
    this.#divide(places, points.subarray(0, low), inner);
    this.#divide(places, points.subarray(low), inner);
  }

  /** Returns the edges of the part that are in the box, with a new known point. Undefined if all tried points are on the boundary. */
  #within(part: Part, box: PlainBox): Part | undefined {
    const [west, south, east, north] = box;
    for (const [across, up] of PLACES) {
      const [lng, lat] = [west + across * (east - west), south + up * (north - south)];
      const found = this.#test(part, lng, lat);
      if (found !== "boundary") return { ...this.#select(part, box), lng, lat, isInside: found === "inside" };
    }
    return undefined;
  }

  /** Lists the edges with a point in the box or on its boundary, and few others. */
  #select({ from, end }: Part, [west, south, east, north]: PlainBox): Pick<Part, "from" | "end"> {
    if (this.#list.length < 2 * end - from) {
      const longer = new Uint32Array(4 * end);
      longer.set(this.#list);
      this.#list = longer;
    }
    const [edges, list] = [this.#edges, this.#list];
    const [x, y] = [(west + east) / 2, (south + north) / 2];
    const [halfWidth, halfHeight] = [(east - west) / 2 + ROUNDING, (north - south) / 2 + ROUNDING];
    this.#compared += end - from;
    let next = end;
    for (let i = from; i < end; i++) {
      const edge = uint32At(list, i);
      const at = edge * EDGE_BYTES;
      const x1 = edges.getFloat64(at, true);
      const x2 = edges.getFloat64(at + X2, true);
      if ((x1 < west && x2 < west) || (x1 > east && x2 > east)) continue;
      const y1 = edges.getFloat64(at + Y1, true);
      const y2 = edges.getFloat64(at + Y2, true);
      if ((y1 < south && y2 < south) || (y1 > north && y2 > north)) continue;
      // The line of the edge meets the box unless all corners of the box are on one side of it.
      const dx = x2 - x1;
      const dy = y2 - y1;
      const away = dy * (x - x1) - dx * (y - y1);
      if (Math.abs(away) <= Math.abs(dy) * halfWidth + Math.abs(dx) * halfHeight) list[next++] = edge;
    }
    return { from: end, end: next };
  }

  /** True if most edges are steep after the box is scaled to a square. A cut at a longitude then leaves more edges in only one half. */
  #isSteep({ from, end }: Part, [west, south, east, north]: PlainBox): boolean {
    const [edges, list, width, height] = [this.#edges, this.#list, east - west, north - south];
    let steep = 0;
    for (let i = from; i < end; i++) {
      const at = uint32At(list, i) * EDGE_BYTES;
      const dx = Math.abs(edges.getFloat64(at + X2, true) - edges.getFloat64(at, true));
      const dy = Math.abs(edges.getFloat64(at + Y2, true) - edges.getFloat64(at + Y1, true));
      steep += Math.sign(dy * width - dx * height);
    }
    return steep === 0 ? width > height : steep > 0;
  }

  /** Follows the line from the part's known point to the given point. At each edge that crosses it, inside changes to outside, or back. */
  #test(
    { from, end, lng: knownLng, lat: knownLat, isInside }: Part,
    lng: number,
    lat: number,
  ): "inside" | "outside" | "boundary" {
    const [edges, list] = [this.#edges, this.#list];
    const [west, east] = knownLng < lng ? [knownLng, lng] : [lng, knownLng];
    const [south, north] = knownLat < lat ? [knownLat, lat] : [lat, knownLat];
    this.#compared += end - from;
    let found = isInside;
    for (let i = from; i < end; i++) {
      const at = uint32At(list, i) * EDGE_BYTES;
      const x1 = edges.getFloat64(at, true);
      const x2 = edges.getFloat64(at + X2, true);
      if ((x1 < west && x2 < west) || (x1 > east && x2 > east)) continue;
      const y1 = edges.getFloat64(at + Y1, true);
      const y2 = edges.getFloat64(at + Y2, true);
      if ((y1 < south && y2 < south) || (y1 > north && y2 > north)) continue;
      const side = orient2d(x1, y1, x2, y2, lng, lat);
      if (side === 0 && isBetween(x1, lng, x2) && isBetween(y1, lat, y2)) return "boundary";
      if (side > 0 === orient2d(x1, y1, x2, y2, knownLng, knownLat) > 0) continue;
      // A vertex on the line counts as left of it, so that an edge that ends there and the next one are not both counted.
      const isLeft = orient2d(knownLng, knownLat, lng, lat, x1, y1) >= 0;
      if (isLeft !== orient2d(knownLng, knownLat, lng, lat, x2, y2) >= 0) found = !found;
    }
    return found ? "inside" : "outside";
  }
}

/** Candidates for the known point of a part, as shares of a box's width and height. At least one of them is nearly always off the edges. */
const PLACES = [
  [0.5, 0.5],
  [0.37, 0.61],
  [0.71, 0.43],
] as const;

interface Places {
  readonly lngs: Float64Array;
  readonly lats: Float64Array;
  readonly inside: Uint32Array;
}

function boxAround({ lngs, lats }: Places, points: Uint32Array): PlainBox {
  let [west, south, east, north] = [TURN, TURN, -TURN, -TURN];
  for (let i = 0; i < points.length; i++) {
    const point = uint32At(points, i);
    const lng = doubleAt(lngs, point);
    const lat = doubleAt(lats, point);
    if (lng < west) west = lng;
    if (lng > east) east = lng;
    if (lat < south) south = lat;
    if (lat > north) north = lat;
  }
  return [west, south, east, north];
}

const isBetween = (one: number, value: number, other: number): boolean =>
  one < other ? value >= one && value <= other : value >= other && value <= one;

/** The box of the ring of `unwrapped`: its maxLng may be greater than 180. */
export const plainBoxOf = (ring: Ring): PlainBox => boxOf(unwrapped(ring) ?? ring);

function boxOf(ring: Ring): PlainBox {
  let [west, south, east, north] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, -TURN, -TURN];
  for (const [lng, lat] of ring) {
    west = Math.min(west, lng);
    south = Math.min(south, lat);
    east = Math.max(east, lng);
    north = Math.max(north, lat);
  }
  return [west, south, east, north];
}

/** Converts longitudes above 180. If the box touches the meridian, it then contains both longitudes of the meridian, 180 and -180. */
function boxOnEarth([west, south, east, north]: PlainBox): PlainBox {
  if (east - west >= TURN) return [-180, south, 180, north];
  return [west === -180 ? 180 : west, south, east >= 180 ? east - TURN : east, north];
}

/** If the ring crosses the meridian, an edge that reaches it is returned twice, once on each side of the map. */
function edgesOf(ring: Ring, isCrossing: boolean): DataView {
  const edges: number[] = [];
  for (const [i, [x1, y1]] of ring.entries()) {
    const [to, y2] = following(ring, i);
    const x2 = isCrossing ? to + TURN * stepOf(x1, to) : to;
    edges.push(x1, y1, x2, y2);
    if (!isCrossing) continue;
    if (Math.max(x1, x2) >= 180) edges.push(x1 - TURN, y1, x2 - TURN, y2);
    if (Math.min(x1, x2) <= -180) edges.push(x1 + TURN, y1, x2 + TURN, y2);
  }
  return new DataView(Float64Array.from(edges).buffer);
}
