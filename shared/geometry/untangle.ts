/** Divides a ring that crosses or touches itself into rings that do neither, by the even-odd rule. Maps draw only these correctly. */
import { orient2d } from "robust-predicates";
import { at } from "#shared/at.ts";
import { doubleArea, type PlanePoint, type PlaneRing, squared } from "#shared/geometry/clip.ts";
import { following } from "#shared/geometry/ring.ts";

/** The rings are open and do not cross each other. */
interface Area {
  readonly outer: PlaneRing;
  readonly holes: readonly PlaneRing[];
}

/** Maximum average number of edges with which each edge is compared. A ring with at most 128 edges never needs more. */
const COMPARISONS_PER_EDGE = 64;
export const MOST_CROSSINGS = 256;

/** `untangled` moves points by less than this, in the unit of the coordinates. */
const MOVED = 0.01;

/**
 * Returns the areas inside an open ring by the even-odd rule. The points of a ring that touches itself are moved a little, because edges
 * might otherwise overlap, or several cross at one point. A ring with too many crossings or overlapping edges is returned unchanged, or is
 * left out if it has many points and the areas of its parts cancel out.
 */
export function untangled(ring: PlaneRing): readonly Area[] {
  const walk = touchesItself(ring) ? withCrossings(ring.map(moved)) : undefined;
  if (walk === undefined) {
    return ring.length > MOST_CROSSINGS && !isWide(ring) ? [] : [{ outer: ring, holes: [] }];
  }
  return nested(uncrossed(walk).flatMap(loopsOf).filter(isWide));
}

type Edge = readonly [from: PlanePoint, to: PlanePoint];

const edgesOf = (ring: PlaneRing): Edge[] => ring.map((from, i) => [from, following(ring, i)]);

/** Moves a point a little. The direction depends only on its index in the ring, so the point moves equally in all map tiles. */
const moved = ([x, y]: PlanePoint, index: number): PlanePoint => [
  x + MOVED * fractionOf(index * Math.SQRT2),
  y + MOVED * fractionOf(index * Math.E),
];

const fractionOf = (number: number): number => number - Math.floor(number);

/** Neighbouring edges that share only an end do not count as touching. False if `comparePairs` gives up. */
function touchesItself(ring: PlaneRing): boolean {
  const edges = edgesOf(ring);
  let found = false;
  comparePairs(edges, ([first, at], [second, other]) => {
    const apart = Math.abs(at - other);
    const areNeighbours = apart === 1 || apart === edges.length - 1;
    found =
      crossingOf(first, second) !== undefined ||
      second.some((end) => isOn(end, first)) ||
      first.some((end) => isOn(end, second)) ||
      (!areNeighbours && first.some((end) => second.some((point) => isSame(end, point))));
    return !found;
  });
  return found;
}

/** Returns the ring with each crossing as a point of both edges. Undefined if there are over MOST_CROSSINGS, or `comparePairs` gives up. */
function withCrossings(ring: PlaneRing): PlanePoint[] | undefined {
  const edges = edgesOf(ring);
  const added = edges.map((): PlanePoint[] => []);
  let crossings = 0;
  const isComplete = comparePairs(edges, ([first, one], [second, other]) => {
    const crossing = crossingOf(first, second);
    if (crossing === undefined) return true;
    at(added, one).push(crossing);
    at(added, other).push(crossing);
    return ++crossings <= MOST_CROSSINGS;
  });
  if (!isComplete) return undefined;
  return edges.flatMap(([from], i) => [from, ...at(added, i).sort((a, b) => squared(from, a) - squared(from, b))]);
}

type Numbered = readonly [edge: Edge, index: number];

/**
 * Calls `compare` with each pair of edges whose boxes overlap. Stops and returns false if `compare` returns false, or if more than
 * COMPARISONS_PER_EDGE pairs for each edge overlap from west to east.
 */
function comparePairs(edges: readonly Edge[], compare: (one: Numbered, other: Numbered) => boolean): boolean {
  const boxes = edges
    .map((edge, index) => {
      const [[x1, y1], [x2, y2]] = edge;
      const [west, east, north, south] = [Math.min(x1, x2), Math.max(x1, x2), Math.min(y1, y2), Math.max(y1, y2)];
      return { numbered: [edge, index] as const, west, east, north, south };
    })
    .sort((a, b) => a.west - b.west);
  let left = COMPARISONS_PER_EDGE * edges.length;
  for (const [i, { numbered, east, north, south }] of boxes.entries()) {
    for (let next = i + 1; next < boxes.length; next++) {
      const other = at(boxes, next);
      if (other.west > east) break;
      if (left-- === 0) return false;
      if (other.north <= south && other.south >= north && !compare(numbered, other.numbered)) return false;
    }
  }
  return true;
}

const isSame = ([x1, y1]: PlanePoint, [x2, y2]: PlanePoint): boolean => x1 === x2 && y1 === y2;
const sideOf = ([from, to]: Edge, [x, y]: PlanePoint): number => orient2d(from[0], from[1], to[0], to[1], x, y);

/** Undefined if the edges do not cross, or if an end of one edge is on the other edge. */
function crossingOf(first: Edge, second: Edge): PlanePoint | undefined {
  const [a, b] = [sideOf(second, first[0]), sideOf(second, first[1])];
  if (!(a < 0 && b > 0) && !(a > 0 && b < 0)) return undefined;
  const [c, d] = [sideOf(first, second[0]), sideOf(first, second[1])];
  if (!(c < 0 && d > 0) && !(c > 0 && d < 0)) return undefined;
  const share = a / (a - b);
  const [[x1, y1], [x2, y2]] = first;
  return [x1 + share * (x2 - x1), y1 + share * (y2 - y1)];
}

/** True if the point is on the edge, but at none of its ends. */
function isOn(point: PlanePoint, edge: Edge): boolean {
  if (isSame(point, edge[0]) || isSame(point, edge[1]) || sideOf(edge, point) !== 0) return false;
  const [x, y] = point;
  const [[x1, y1], [x2, y2]] = edge;
  return x >= Math.min(x1, x2) && x <= Math.max(x1, x2) && y >= Math.min(y1, y2) && y <= Math.max(y1, y2);
}

/** The ring passes each crossing twice. Exchanging the two next points makes both paths turn at the crossing, so they no longer cross. */
function uncrossed(walk: readonly PlanePoint[]): PlanePoint[][] {
  const next = walk.map((_, i) => (i + 1) % walk.length);
  const places = new Map<PlanePoint, number>();
  for (const [i, point] of walk.entries()) {
    const first = places.get(point);
    if (first !== undefined) [next[first], next[i]] = [at(next, i), at(next, first)];
    places.set(point, i);
  }
  const rings: PlanePoint[][] = [];
  const passed = new Set<number>();
  for (const start of walk.keys()) {
    const ring: PlanePoint[] = [];
    for (let i = start; !passed.has(i); i = at(next, i)) {
      passed.add(i);
      ring.push(at(walk, i));
    }
    if (ring.length > 0) rings.push(ring);
  }
  return rings;
}

/** Divides the ring at each point that it contains twice. */
function loopsOf(ring: readonly PlanePoint[]): PlanePoint[][] {
  const loops: PlanePoint[][] = [];
  const path: PlanePoint[] = [];
  const places = new Map<PlanePoint, number>();
  for (const point of ring) {
    // `places` may contain a point that was removed from the path. The comparison below is then false.
    const place = places.get(point) ?? path.length;
    if (path[place] === point) loops.push(path.splice(place));
    places.set(point, path.length);
    path.push(point);
  }
  return [...loops, path];
}

/** A ring inside an odd number of others is a hole of the innermost of them. */
function nested(loops: readonly PlaneRing[]): Area[] {
  const boxes = loops.map(boxOf);
  const around = loops.map((loop, own) => {
    const [x, y] = middleOf(loop);
    return [...loops.keys()].filter((other) => {
      const [west, north, east, south] = at(boxes, other);
      if (other === own || x < west || x > east || y < north || y > south) return false;
      return contains(at(loops, other), [x, y]);
    });
  });
  const depthOf = (loop: number): number => at(around, loop).length;
  const isHole = (loop: number): boolean => depthOf(loop) % 2 === 1;
  const holes = Map.groupBy([...loops.keys()].filter(isHole), (hole) =>
    at(around, hole).find((other) => depthOf(other) === depthOf(hole) - 1),
  );
  return loops.flatMap((outer, own) =>
    isHole(own) ? [] : [{ outer, holes: holes.get(own)?.map((hole) => at(loops, hole)) ?? [] }],
  );
}

function boxOf(ring: PlaneRing): [west: number, north: number, east: number, south: number] {
  const [xs, ys] = [ring.map(([x]) => x), ring.map(([, y]) => y)];
  return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
}

/** False for a ring that is so narrow that it exists only because points were moved. */
function isWide(ring: PlaneRing): boolean {
  const length = edgesOf(ring).reduce((sum, edge) => sum + lengthOf(edge), 0);
  return Math.abs(doubleArea(ring)) > 4 * MOVED * length;
}

/** The middle of the longest edge shows whether the ring is inside another one. The ends of edges do not, because rings may touch there. */
function middleOf(ring: PlaneRing): PlanePoint {
  const [from, to] = edgesOf(ring).reduce((longest, edge) => (lengthOf(edge) > lengthOf(longest) ? edge : longest));
  return [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
}

const lengthOf = ([[x1, y1], [x2, y2]]: Edge): number => Math.hypot(x2 - x1, y2 - y1);

function contains(ring: PlaneRing, [x, y]: PlanePoint): boolean {
  let isInside = false;
  let before = ring.at(-1);
  for (const point of ring) {
    if (before !== undefined) {
      const [[x1, y1], [x2, y2]] = [before, point];
      if (y1 > y !== y2 > y && x < x1 + ((y - y1) * (x2 - x1)) / (y2 - y1)) isInside = !isInside;
    }
    before = point;
  }
  return isInside;
}
