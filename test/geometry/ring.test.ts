/**
 * Tests the code that decides whether a point is inside a ring. Compares it with an independent implementation, and checks cases with known
 * results.
 */
import fc from "fast-check";
import pointInPolygon from "point-in-polygon-hao";
import { expect, test } from "vitest";
import { type Ring, RingArea } from "#shared/geometry/ring.ts";

/**
 * Coordinates on a small grid. With them, random points and boxes are often on vertices and edges, and edges are often horizontal or
 * vertical.
 */
const onGrid = fc.integer({ min: -4, max: 4 });
/**
 * Multiples of 2^-40. The independent implementation subtracts coordinates. Differences of these numbers are exact, so its result is too.
 */
const anywhere = fc.integer({ min: -90 * 2 ** 40, max: 90 * 2 ** 40 }).map((value) => value / 2 ** 40);
const pointOf = (coordinate: fc.Arbitrary<number>) => fc.tuple(coordinate, coordinate);
const rings = (coordinate: fc.Arbitrary<number>) => fc.array(pointOf(coordinate), { minLength: 3, maxLength: 12 });

/**
 * Returns true if the independent implementation finds the point inside the ring or on its boundary. It returns 0 for a point on the
 * boundary, so the result is compared with false.
 */
const expected = (ring: Ring, [lng, lat]: readonly [number, number]): boolean =>
  pointInPolygon([lng, lat], [[...ring, ...ring.slice(0, 1)].map(([x, y]) => [x, y])]) !== false;

/** Returns a vertex, or the middle of an edge. */
const near = (ring: Ring, edge: number, isVertex: boolean): [number, number] => {
  const [x1, y1] = ring[edge % ring.length] ?? [0, 0];
  const [x2, y2] = ring[(edge + 1) % ring.length] ?? [0, 0];
  return isVertex ? [x1, y1] : [(x1 + x2) / 2, (y1 + y2) / 2];
};

test("a point is inside by the even-odd rule, on edges and vertices too, as point-in-polygon-hao finds it", () => {
  fc.assert(
    fc.property(rings(onGrid), fc.array(pointOf(onGrid), { minLength: 10, maxLength: 10 }), (ring, points) => {
      const area = new RingArea(ring);
      for (const [lng, lat] of points) expect(area.contains(lng, lat)).toBe(expected(ring, [lng, lat]));
    }),
    { numRuns: 1_000 },
  );
  fc.assert(
    fc.property(rings(anywhere), pointOf(anywhere), fc.nat(20), (ring, point, edge) => {
      const area = new RingArea(ring);
      const points = [point, near(ring, edge, true), near(ring, edge, false)];
      for (const [lng, lat] of points) expect(area.contains(lng, lat)).toBe(expected(ring, [lng, lat]));
    }),
    { numRuns: 3_500 },
  );
});

test("a point a hair beside a long edge is on the right side of it", () => {
  const area = new RingArea([
    [0, 0],
    [180, 90],
    [0, 90],
  ]);
  expect(area.contains(100, 50)).toBe(true);
  expect(area.contains(100 + 2 ** -46, 50)).toBe(false);
  expect(area.contains(100 - 2 ** -46, 50)).toBe(true);
});

test("the boundary belongs to the area, and the hole of a ring that crosses itself does not", () => {
  // A five-pointed star: the even-odd rule leaves out its middle.
  const star: Ring = [
    [0, 10],
    [6, -8],
    [-9.5, 3],
    [9.5, 3],
    [-6, -8],
  ];
  const area = new RingArea(star);
  for (const [lng, lat] of star) expect(area.contains(lng, lat)).toBe(true);
  expect([area.contains(0, 0), area.contains(0, 8), area.contains(0, 3), area.contains(20, 3)]).toEqual([
    false,
    true,
    true,
    false,
  ]);
});

test("a ring without an area contains its own points only", () => {
  const line = new RingArea([
    [1, 1],
    [3, 3],
    [1, 1],
  ]);
  expect([line.contains(2, 2), line.contains(1, 1), line.contains(2, 2.1)]).toEqual([true, true, false]);
  const flat = new RingArea([
    [1, 5],
    [3, 5],
    [2, 5],
  ]);
  expect([flat.contains(2.5, 5), flat.contains(3.1, 5), flat.contains(2, 5 + 1e-12)]).toEqual([true, false, false]);
  const thin = new RingArea([
    [0, 0],
    [1, Number.MIN_VALUE],
    [2, 0],
  ]);
  expect([thin.contains(1, Number.MIN_VALUE), thin.contains(1, 1)]).toEqual([true, false]);
});

test("5 000 edges that all cross each other need a bounded memory, and points are found inside them", () => {
  const ring: Ring = Array.from({ length: 5_000 }, (_, i) => [
    Math.sin(i * 2.4) * 10,
    i % 2 === 0 ? -10 + i / 1e6 : 10,
  ]);
  const area = new RingArea(ring);
  for (let i = 0; i < 40; i++) {
    const point: [number, number] = [Math.sin(i) * 10, Math.cos(i * 3) * 10];
    expect(area.contains(...point)).toBe(expected(ring, point));
  }
});

test("the edges in a box are exactly those that touch it", () => {
  fc.assert(
    fc.property(rings(onGrid), onGrid, onGrid, fc.nat(3), fc.nat(3), (ring, west, south, width, height) => {
      const area = new RingArea(ring);
      const box = [west, south, west + width, south + height] as const;
      const found = new Set(area.edgesIn(box));
      // An edge that touches the box has an end in the box or crosses a side of it. The ends and the sides have integer coordinates, and an
      // edge extends over at most 8 units in each direction. A crossing is therefore at a fraction of the edge's length whose denominator
      // is at most 8. All such fractions are multiples of 1/840.
      for (let edge = 0; edge < ring.length; edge++) {
        const touches = Array.from({ length: 841 }, (_, i) => pointAt(ring, edge, i)).some(
          ([x, y]) => x >= 840 * box[0] && x <= 840 * box[2] && y >= 840 * box[1] && y <= 840 * box[3],
        );
        expect(found.has(edge)).toBe(touches);
      }
    }),
    { numRuns: 100 },
  );
});

/** Returns the point at `part`/840 of an edge. Its coordinates are multiplied by 840, so that they are integers. */
function pointAt(ring: Ring, edge: number, part: number): [number, number] {
  const [x1, y1] = ring[edge] ?? [0, 0];
  const [x2, y2] = ring[(edge + 1) % ring.length] ?? [0, 0];
  return [x1 * (840 - part) + x2 * part, y1 * (840 - part) + y2 * part];
}
