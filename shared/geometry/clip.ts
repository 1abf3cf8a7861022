/** Simplifies and clips rings in the plane, for maps. */
import { at } from "#shared/at.ts";

export type PlanePoint = readonly [x: number, y: number];
export type PlaneRing = readonly PlanePoint[];

/** Returns the ring open, and without points that are at most `tolerance` from the result. */
export const simplified = (ring: PlaneRing, tolerance: number): PlanePoint[] =>
  withoutFlatParts(thinned(isClosed(ring) ? ring.slice(0, -1) : ring, tolerance / 2), tolerance / 2);

/** Removes points that are close to the last kept point, so that the slower `withoutFlatParts` gets fewer points. */
function thinned(points: PlaneRing, tolerance: number): PlaneRing {
  let last: PlanePoint | undefined;
  return points.filter((point) => {
    if (last !== undefined && squared(point, last) <= tolerance ** 2) return false;
    last = point;
    return true;
  });
}

/** Maximum average number of comparisons of a point with a line. Most rings need at most 15, but some zigzags need thousands. */
const COMPARISONS_PER_POINT = 20;

/** Removes points by the Douglas-Peucker algorithm. Keeps the points that are left after the maximum number of comparisons. */
function withoutFlatParts(points: PlaneRing, tolerance: number): PlanePoint[] {
  const first = points[0];
  if (first === undefined) return [];
  const farthest = farthestFrom(points, 0, points.length, (point) => squared(point, first));
  if (farthest === undefined || farthest.value <= tolerance ** 2) return [first];
  const kept = new Uint8Array(points.length);
  kept[0] = 1;
  kept[farthest.index] = 1;
  let left = COMPARISONS_PER_POINT * points.length;
  // A loop instead of recursive calls, because a ring of 5 000 points may be divided 5 000 times, which could overflow the stack.
  const parts: [from: number, to: number][] = [
    [0, farthest.index],
    [farthest.index, points.length],
  ];
  for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
    const [from, to] = part;
    const [start, end] = [at(points, from), at(points, to % points.length)];
    left -= to - from;
    if (left < 0) {
      kept.fill(1, from, to);
      continue;
    }
    const next = farthestFrom(points, from + 1, to, (point) => squaredToLine(point, start, end));
    if (next === undefined || next.value <= tolerance ** 2) continue;
    kept[next.index] = 1;
    parts.push([from, next.index], [next.index, to]);
  }
  return points.filter((_, i) => kept[i] === 1);
}

export const isClosed = (ring: PlaneRing): boolean => {
  const [first, last] = [ring[0], ring.at(-1)];
  return ring.length > 1 && first?.[0] === last?.[0] && first?.[1] === last?.[1];
};

function farthestFrom(
  points: PlaneRing,
  from: number,
  to: number,
  distance: (point: PlanePoint) => number,
): { index: number; value: number } | undefined {
  let farthest: { index: number; value: number } | undefined;
  for (let i = from; i < to; i++) {
    const value = distance(at(points, i));
    if (farthest === undefined || value > farthest.value) farthest = { index: i, value };
  }
  return farthest;
}

export const squared = ([x1, y1]: PlanePoint, [x2, y2]: PlanePoint): number => (x1 - x2) ** 2 + (y1 - y2) ** 2;

function squaredToLine(point: PlanePoint, start: PlanePoint, end: PlanePoint): number {
  const length = squared(start, end);
  if (length === 0) return squared(point, start);
  const [dx, dy] = [end[0] - start[0], end[1] - start[1]];
  const along = ((point[0] - start[0]) * dx + (point[1] - start[1]) * dy) / length;
  const within = Math.max(0, Math.min(1, along));
  return squared(point, [start[0] + within * dx, start[1] + within * dy]);
}

/** Clips the ring to the square from `low` to `high` on both axes, by the Sutherland-Hodgman algorithm. */
export function clipped(ring: PlaneRing, low: number, high: number): PlanePoint[] {
  const sides = [
    [0, low, 1],
    [0, high, -1],
    [1, low, 1],
    [1, high, -1],
  ] as const;
  return sides.reduce<PlaneRing>((rest, [axis, edge, sign]) => behind(rest, axis, edge, sign), ring).slice();
}

/** Returns the part of the ring on one side of a line: at or above `edge` if `sign` is 1, and at or below `edge` if it is -1. */
function behind(ring: PlaneRing, axis: 0 | 1, edge: number, sign: 1 | -1): PlanePoint[] {
  const result: PlanePoint[] = [];
  let before = ring.at(-1);
  for (const point of ring) {
    if (before === undefined) break;
    const [wasIn, isIn] = [sign * (before[axis] - edge) >= 0, sign * (point[axis] - edge) >= 0];
    if (wasIn !== isIn) {
      const share = (edge - before[axis]) / (point[axis] - before[axis]);
      const other = axis === 0 ? 1 : 0;
      const crossing = before[other] + share * (point[other] - before[other]);
      result.push(axis === 0 ? [edge, crossing] : [crossing, edge]);
    }
    if (isIn) result.push(point);
    before = point;
  }
  return result;
}

/** Twice the area. It is positive if the ring is clockwise on a screen, whose y axis points down. */
export function doubleArea(ring: PlaneRing): number {
  let sum = 0;
  let before = ring.at(-1);
  for (const point of ring) {
    if (before !== undefined) sum += before[0] * point[1] - point[0] * before[1];
    before = point;
  }
  return sum;
}
