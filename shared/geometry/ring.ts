/**
 * The area inside a ring of `[lng, lat]` points, by the even-odd rule, with its boundary. An edge is a straight line in degrees. It crosses
 * the 180th meridian if its longitudes differ by more than 180 and less than 360 degrees, unless the ring goes around a pole.
 */
import { orient2d } from "robust-predicates";

export type Ring = readonly (readonly [lng: number, lat: number])[];

/** The edges of a box in degrees. minLng is not greater than maxLng. */
export type PlainBox = readonly [minLng: number, minLat: number, maxLng: number, maxLat: number];

/** The sum of the signed differences of an edge that crosses the meridian and of its plain difference. */
const TURN = 360;

/**
 * Returns how often the ring has gone around the earth before each of its points, minus the times it came back. Undefined if no edge crosses
 * the meridian, or if the ring goes around a pole.
 */
function turnsOf(ring: Ring): number[] | undefined {
  let turns = 0;
  let isCrossing = false;
  const all = ring.map(([lng], at) => {
    const before = turns;
    const step = stepOf(lng, (ring[(at + 1) % ring.length] ?? [lng])[0]);
    isCrossing ||= step !== 0;
    turns += step;
    return before;
  });
  return isCrossing && turns === 0 ? all : undefined;
}

/** 1 for an edge that crosses the meridian eastwards, and -1 for one that crosses it westwards. */
function stepOf(from: number, to: number): -1 | 0 | 1 {
  const width = Math.abs(to - from);
  if (width <= TURN / 2 || width >= TURN) return 0;
  return to < from ? 1 : -1;
}

/**
 * Returns the ring with longitudes in which no edge crosses the meridian. The westernmost one is at least -180 and less than 180, and those
 * beyond the meridian are greater than 180. Undefined if no edge crosses it.
 */
export function unwrapped(ring: Ring): [lng: number, lat: number][] | undefined {
  const turns = turnsOf(ring);
  if (turns === undefined) return undefined;
  const west = ring.reduce(
    (least, [lng], at) => Math.min(least, lng + TURN * (turns[at] ?? 0)),
    Number.POSITIVE_INFINITY,
  );
  const shift = -Math.floor((west + TURN / 2) / TURN);
  return ring.map(([lng, lat], at) => [lng + TURN * ((turns[at] ?? 0) + shift), lat]);
}

/** A part of the map, which is divided when several points of it are tested. */
interface Cell {
  readonly box: PlainBox;
  /** The range of `#lists` with all edges that have a point in the box. */
  readonly from: number;
  readonly end: number;
  /** A point of the box that is not on the boundary of the area. */
  readonly lng: number;
  readonly lat: number;
  readonly isInside: boolean;
  visits: number;
  halves?: { readonly isByLng: boolean; readonly middle: number; readonly low: Cell; readonly high: Cell };
}

/** A cell with at most this number of edges is not divided. */
const FEW_EDGES = 6;
/** A cell is divided at this test of a point, because a division needs as much time as several tests. */
const VISITS = 16;
/** A cell that is narrower, in degrees, is not divided: no two homes are so close together. */
const NARROWEST = 1e-7;
/** With more bytes, all divisions are undone. Points that are tested in the order of a map mostly need only the last ones. */
const MOST_BYTES = 12_000_000;
const CELL_BYTES = 250;
/** A margin in degrees for rounding errors. */
const ROUNDING = 1e-11;

/**
 * Tests whether points are inside a ring. It divides the map where points are tested, until each cell lists only a few edges. The time of
 * many tests therefore grows much less than the product of points and edges. The predicates are exact for coordinates that are 0 or whose
 * absolute value is at least 1e-140, so a point on an edge is always recognised.
 */
export class RingArea {
  /** Crosses the 180th meridian if its minLng is greater than its maxLng. */
  readonly box: PlainBox;
  /** Four numbers for each edge: its ends (x1, y1) and (x2, y2). */
  readonly #edges: Float64Array;
  /** The part of the map in which points are compared with edges. */
  readonly #plane: PlainBox;
  #root: Cell;
  /** The numbers of edges, for all cells. */
  #lists: Uint32Array = new Uint32Array();
  #cells = 0;
  #used = 0;
  #compared = 0;

  /** @param ring at least one point. The last point may repeat the first one. */
  constructor(ring: Ring) {
    const whole = unwrapped(ring);
    this.#edges = edgesOf(ring, whole !== undefined);
    this.box = whole === undefined ? boxOf(ring) : boxOnEarth(boxOf(whole));
    this.#plane = whole === undefined ? this.box : [-180, this.box[1], 180, this.box[3]];
    this.#root = this.#undivided();
  }

  #undivided(): Cell {
    const [west, south, east, north] = this.#plane;
    // South of the ring is outside, so the cells begin there.
    const below = south - (north - south) / 16 - NARROWEST;
    this.#lists = Uint32Array.from({ length: 4 * this.size }, (_, edge) => edge);
    this.#used = this.size;
    this.#cells = 1;
    return {
      box: [west, below, east, north],
      from: 0,
      end: this.size,
      lng: west,
      lat: below,
      isInside: false,
      visits: 0,
    };
  }

  /** Number of edges. One that touches the 180th meridian counts twice if the ring crosses it. */
  get size(): number {
    return this.#edges.length / 4;
  }

  /** Approximate bytes in memory. They grow while points are tested. */
  get bytes(): number {
    return this.#edges.byteLength + this.#lists.byteLength + this.#cells * CELL_BYTES;
  }

  /** Number of comparisons of an edge with a point or a cell, for tests. */
  get compared(): number {
    return this.#compared;
  }

  /** True also on the boundary. False if a coordinate is NaN. */
  contains(lng: number, lat: number): boolean {
    const [west, south, east, north] = this.#plane;
    if (!(lat >= south && lat <= north && lng >= west && lng <= east)) return false;
    if (this.#cells * CELL_BYTES + this.#used * Uint32Array.BYTES_PER_ELEMENT > MOST_BYTES)
      this.#root = this.#undivided();
    let cell = this.#root;
    while (this.#isDivided(cell)) {
      const { isByLng, middle, low, high } = cell.halves;
      cell = (isByLng ? lng : lat) < middle ? low : high;
    }
    return this.#test(cell, lng, lat) !== "outside";
  }

  /** Returns the numbers of all edges with a point in the box or on its boundary, among all or the given edges, and of few others. */
  edgesIn(box: PlainBox, among: Uint32Array = Uint32Array.from({ length: this.size }, (_, edge) => edge)): Uint32Array {
    const found = new Uint32Array(among.length);
    return found.subarray(0, this.#select(box, among, 0, among.length, found, 0));
  }

  /** Copies the numbers of the edges in the box to `into`, beginning at `at`. Returns the end of the copies. */
  #select(
    [west, south, east, north]: PlainBox,
    list: Uint32Array,
    from: number,
    end: number,
    into: Uint32Array,
    at: number,
  ): number {
    const edges = this.#edges;
    const [x, y] = [(west + east) / 2, (south + north) / 2];
    const [halfWidth, halfHeight] = [(east - west) / 2 + ROUNDING, (north - south) / 2 + ROUNDING];
    this.#compared += end - from;
    let next = at;
    for (let i = from; i < end; i++) {
      const edge = list[i] ?? 0;
      const x1 = edges[4 * edge] ?? 0;
      const x2 = edges[4 * edge + 2] ?? 0;
      if ((x1 < west && x2 < west) || (x1 > east && x2 > east)) continue;
      const y1 = edges[4 * edge + 1] ?? 0;
      const y2 = edges[4 * edge + 3] ?? 0;
      if ((y1 < south && y2 < south) || (y1 > north && y2 > north)) continue;
      // The line of the edge meets the box if the box reaches from its middle to the line.
      const dx = x2 - x1;
      const dy = y2 - y1;
      const away = dy * (x - x1) - dx * (y - y1);
      if (Math.abs(away) <= Math.abs(dy) * halfWidth + Math.abs(dx) * halfHeight) into[next++] = edge;
    }
    return next;
  }

  #isDivided(cell: Cell): cell is Cell & Required<Pick<Cell, "halves">> {
    if (cell.halves !== undefined) return true;
    if (cell.end - cell.from <= FEW_EDGES || ++cell.visits < VISITS) return false;
    cell.visits = 0;
    const [west, south, east, north] = cell.box;
    if (Math.max(east - west, north - south) < NARROWEST) return false;
    const isByLng = this.#isSteep(cell);
    const middle = isByLng ? (west + east) / 2 : (south + north) / 2;
    const low = this.#part(cell, isByLng ? [west, south, middle, north] : [west, south, east, middle]);
    const high = this.#part(cell, isByLng ? [middle, south, east, north] : [west, middle, east, north]);
    if (low === undefined || high === undefined) return false;
    cell.halves = { isByLng, middle, low, high };
    this.#cells += 2;
    return true;
  }

  /** True if most edges go from south to north in the cell, seen as a square. Then a division by longitude puts more of them into one half. */
  #isSteep({ from, end, box: [west, south, east, north] }: Cell): boolean {
    const [edges, lists, width, height] = [this.#edges, this.#lists, east - west, north - south];
    let steep = 0;
    for (let i = from; i < end; i++) {
      const at = 4 * (lists[i] ?? 0);
      const dx = Math.abs((edges[at + 2] ?? 0) - (edges[at] ?? 0));
      const dy = Math.abs((edges[at + 3] ?? 0) - (edges[at + 1] ?? 0));
      steep += Math.sign(dy * width - dx * height);
    }
    return steep === 0 ? width > height : steep > 0;
  }

  /** Undefined if each of a few points of the box is on the boundary of the area. */
  #part(cell: Cell, box: PlainBox): Cell | undefined {
    const [west, south, east, north] = box;
    for (const [across, up] of PLACES) {
      const [lng, lat] = [west + across * (east - west), south + up * (north - south)];
      const found = this.#test(cell, lng, lat);
      if (found === "boundary") continue;
      const from = this.#used;
      const room = from + cell.end - cell.from;
      if (room > this.#lists.length) {
        const lists = new Uint32Array(2 * room);
        lists.set(this.#lists);
        this.#lists = lists;
      }
      const end = this.#select(box, this.#lists, cell.from, cell.end, this.#lists, from);
      this.#used = end;
      return { box, from, end, lng, lat, isInside: found === "inside", visits: 0 };
    }
    return undefined;
  }

  /** Counts the edges that cross the line from the cell's known point to the given one. Edges outside the cell cannot cross it. */
  #test(
    { from, end, lng: knownLng, lat: knownLat, isInside }: Cell,
    lng: number,
    lat: number,
  ): "inside" | "outside" | "boundary" {
    const [edges, lists] = [this.#edges, this.#lists];
    const [west, east] = knownLng < lng ? [knownLng, lng] : [lng, knownLng];
    const [south, north] = knownLat < lat ? [knownLat, lat] : [lat, knownLat];
    this.#compared += end - from;
    let found = isInside;
    for (let i = from; i < end; i++) {
      const at = 4 * (lists[i] ?? 0);
      const x1 = edges[at] ?? 0;
      const x2 = edges[at + 2] ?? 0;
      if ((x1 < west && x2 < west) || (x1 > east && x2 > east)) continue;
      const y1 = edges[at + 1] ?? 0;
      const y2 = edges[at + 3] ?? 0;
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

/** Places in a box, as shares of its width and height. Of three such points, one is hardly ever on an edge. */
const PLACES = [
  [0.5, 0.5],
  [0.37, 0.61],
  [0.71, 0.43],
] as const;

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

/** Both longitudes of the meridian, 180 and -180, are in the box, if the box reaches one of them. */
function boxOnEarth([west, south, east, north]: PlainBox): PlainBox {
  if (east - west >= TURN) return [-180, south, 180, north];
  return [west === -180 ? 180 : west, south, east >= 180 ? east - TURN : east, north];
}

/**
 * Returns the edges between the longitudes -180 and 180. If the ring crosses the meridian, an edge that reaches it is returned twice, once
 * on each side of the map.
 */
function edgesOf(ring: Ring, isCrossing: boolean): Float64Array {
  const edges: number[] = [];
  for (const [at, [x1, y1]] of ring.entries()) {
    const [to, y2] = ring[(at + 1) % ring.length] ?? [x1, y1];
    const x2 = isCrossing ? to + TURN * stepOf(x1, to) : to;
    edges.push(x1, y1, x2, y2);
    if (!isCrossing) continue;
    if (Math.max(x1, x2) >= 180) edges.push(x1 - TURN, y1, x2 - TURN, y2);
    if (Math.min(x1, x2) <= -180) edges.push(x1 + TURN, y1, x2 + TURN, y2);
  }
  return Float64Array.from(edges);
}
