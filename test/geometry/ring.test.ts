/** Tests whether a point is inside a ring, against an independent implementation, and how rings are cut at the 180th meridian. */
import fc from "fast-check";
import pointInPolygon from "point-in-polygon-hao";
import { expect, test } from "vitest";
import { cutAtMeridian, joinedAtMeridian, withoutCuts } from "#shared/geometry/meridian.ts";
import { type Ring, RingArea } from "#shared/geometry/ring.ts";
import { exteriorRing } from "#shared/territories/geojson.ts";
import { signOf } from "#shared/territories/import.ts";
import { rectangle, ringOf } from "../harness/rings.ts";
import { sized } from "../harness/tier.ts";

/** Coordinates on a small grid, where random points are often on vertices and edges, and edges often horizontal or vertical. */
const onGrid = fc.integer({ min: -4, max: 4 });
/** Multiples of 2^-40. Doubles represent their differences exactly, so the independent implementation has no rounding error. */
const anywhere = fc.integer({ min: -90 * 2 ** 40, max: 90 * 2 ** 40 }).map((value) => value / 2 ** 40);
const pointOf = (coordinate: fc.Arbitrary<number>) => fc.tuple(coordinate, coordinate);
const rings = (coordinate: fc.Arbitrary<number>) => fc.array(pointOf(coordinate), { minLength: 3, maxLength: 12 });

/** `pointInPolygon` returns 0 for a point on the boundary, so the result is compared with false. */
const expected = (ring: Ring, [lng, lat]: readonly [number, number]): boolean =>
  pointInPolygon([lng, lat], [[...ring, ...ring.slice(0, 1)].map(([x, y]) => [x, y])]) !== false;

/** Returns a vertex of the ring, or the middle of an edge. */
const near = (ring: Ring, edge: number, isVertex: boolean): [number, number] => {
  const [x1, y1] = ring[edge % ring.length] ?? [0, 0];
  const [x2, y2] = ring[(edge + 1) % ring.length] ?? [0, 0];
  return isVertex ? [x1, y1] : [(x1 + x2) / 2, (y1 + y2) / 2];
};

const bitsOf = (area: RingArea, points: readonly (readonly [number, number])[]) =>
  area.pointsInside(
    Float64Array.from(points, ([lng]) => lng),
    Float64Array.from(points, ([, lat]) => lat),
  );

/** Tests which points are inside the ring, both one by one and all at once. Fails if the results differ. */
function found(ring: Ring, points: readonly (readonly [number, number])[]): boolean[] {
  const area = new RingArea(ring);
  const single = points.map(([lng, lat]) => area.contains(lng, lat));
  const bits = bitsOf(area, points);
  expect(points.map((_, at) => (((bits[at >>> 5] ?? 0) >>> (at & 31)) & 1) === 1)).toEqual(single);
  return single;
}

test("a point inside, on an edge or on a vertex is found as by point-in-polygon-hao", { tags: "sized" }, () => {
  fc.assert(
    fc.property(rings(onGrid), fc.array(pointOf(onGrid), { minLength: 10, maxLength: 10 }), (ring, points) => {
      expect(found(ring, points)).toEqual(points.map((place) => expected(ring, place)));
    }),
    { numRuns: sized({ short: 250, wide: 3_000 }) },
  );
  fc.assert(
    fc.property(rings(anywhere), pointOf(anywhere), fc.nat(20), (ring, point, edge) => {
      const middles = [edge, edge + 1].map((at) => near(ring, at, false));
      const points = [point, near(ring, edge, true), ...middles, [0, 0]] as const;
      expect(found(ring, points)).toEqual(points.map((place) => expected(ring, place)));
    }),
    { numRuns: sized({ short: 800, wide: 10_000 }) },
  );
});

/** A coarse grid of the earth. Many edges on it cross the 180th meridian, end on it, or span exactly 180 degrees. */
const coarse = fc.tuple(
  fc.integer({ min: -6, max: 6 }).map((column) => column * 30),
  fc.integer({ min: -3, max: 3 }).map((row) => row * 30),
);

/** If an edge crosses the 180th meridian, continues the next longitudes beyond 180 degrees, unless the ring would then not close. */
function plainOf(ring: Ring): { plain: Ring; crosses: boolean } {
  let turns = 0;
  let crosses = false;
  const plain = ring.map(([lng, lat], i): [number, number] => {
    const point: [number, number] = [lng + 360 * turns, lat];
    const step = (ring[(i + 1) % ring.length]?.[0] ?? lng) - lng;
    if (Math.abs(step) > 180 && Math.abs(step) < 360) {
      turns -= Math.sign(step);
      crosses = true;
    }
    return point;
  });
  return turns === 0 && crosses ? { plain, crosses } : { plain: ring, crosses: false };
}

/** The continued ring may go around the earth more than once. A point is inside if an odd number of its longitudes (one a turn) is. */
function expectedOnEarth(ring: Ring, [lng, lat]: readonly [number, number]): boolean {
  const { plain, crosses } = plainOf(ring);
  if (!crosses) return expected(ring, [lng, lat]);
  const closed = [...plain, ...plain.slice(0, 1)].map(([x, y]) => [x, y]);
  const found = Array.from({ length: 7 }, (_, i) => pointInPolygon([lng + (i - 3) * 360, lat], [closed]));
  return found.includes(0) || found.filter((inside) => inside === true).length % 2 === 1;
}

test("an edge of more than 180 degrees crosses the 180th meridian, if the ring then closes", { tags: "sized" }, () => {
  // A quarter of these points is on the grid from which the rings take their points. The others lie between points of that grid.
  const points = Array.from({ length: 25 * 7 }, (_, i): [number, number] => [
    (i % 25) * 15 - 180,
    Math.floor(i / 25) * 30 - 90 + (i % 4 < 2 ? 0 : 15 * Math.sign(75 - Math.floor(i / 25) * 30)),
  ]);
  fc.assert(
    fc.property(fc.array(coarse, { minLength: 3, maxLength: 14 }), (ring) => {
      expect(found(ring, points)).toEqual(points.map((point) => expectedOnEarth(ring, point)));
    }),
    { numRuns: sized({ short: 400, wide: 6_000 }) },
  );
});

test.each([
  [
    "a square across the meridian",
    "170 -10, -170 -10, -170 10, 170 10",
    "180 0, -180 0, 175 10, -170 5",
    "-169 0, 0 0",
  ],
  ["an edge of a full turn along a parallel", "-180 0, 180 0, 180 20, -180 20", "0 10", "0 -1"],
  ["edges of exactly half a turn", "-90 0, 90 0, 90 20, -90 20", "0 10", "180 10"],
  ["a ring around a pole", "0 80, 120 80, -120 80", "0 80", "0 85, 180 85"],
])("%s is read as the contract says", (_, ring, inside, outside) => {
  const area = new RingArea(ringOf(ring));
  for (const [lng, lat] of ringOf(inside)) expect(area.contains(lng, lat), `${lng} ${lat}`).toBe(true);
  for (const [lng, lat] of ringOf(outside)) expect(area.contains(lng, lat), `${lng} ${lat}`).toBe(false);
});

test("many homes at one place, or at neighbouring places beside an edge, get the correct result", () => {
  const ring = ringOf("0 0, 180 90, 0 90");
  // The last two places are closer to the edge than the rounding margin, so no subdivision of the area separates them from the edge.
  const places = [100, 100 + 2 ** -46, 100 - 2 ** -46].map((lng): [number, number] => [lng, 50]);
  const many = Array.from({ length: 20 }, () => places).flat();
  expect(found(ring, many)).toEqual(many.map(([lng]) => lng <= 100));
  const one = many.map((): [number, number] => [100 + 2 ** -46, 50]);
  expect(found(ring, one)).toEqual(one.map(() => false));
});

test("a ring without an area contains its own points only", () => {
  const line = new RingArea(ringOf("1 1, 3 3, 1 1"));
  expect([line.contains(2, 2), line.contains(1, 1), line.contains(2, 2.1)]).toEqual([true, true, false]);
  const flat = new RingArea(ringOf("1 5, 3 5, 2 5"));
  expect([flat.contains(2.5, 5), flat.contains(3.1, 5), flat.contains(2, 5 + 1e-12)]).toEqual([true, false, false]);
  const thin = new RingArea(ringOf(`0 0, 1 ${Number.MIN_VALUE}, 2 0`));
  expect([thin.contains(1, Number.MIN_VALUE), thin.contains(1, 1)]).toEqual([true, false]);
});

const EDGES = 5_000;
const ringBy = (pointAt: (share: number, isEven: boolean, at: number) => [number, number]): Ring =>
  Array.from({ length: EDGES }, (_, i) => pointAt(i / EDGES, i % 2 === 0, i));

test.each<[string, Ring]>([
  ["a zigzag from south to north", ringBy((share, isEven) => [-10 + 20 * share, isEven ? -10 : 10])],
  ["a zigzag from west to east", ringBy((share, isEven) => [isEven ? -10 : 10, -10 + 20 * share])],
  ["a zigzag over the world", ringBy((share, isEven) => [-180 + 360 * share, isEven ? -90 : 90])],
  ["a zigzag across the meridian", ringBy((share, isEven) => [isEven ? -170 : 170, -90 + 180 * share])],
  [
    "corners that alternate over the world",
    ringBy((share, isEven) => (isEven ? [-90 + share, -90 + 80 * share] : [90 - share, 90 - 80 * share])),
  ],
  ["edges that all cross each other", ringBy((_, isEven, i) => [Math.sin(i * 2.4) * 10, isEven ? -10 + i / 1e6 : 10])],
  ["chords of a town", ringBy((_, __, i) => [Math.sin(i * 2.4) * 10, Math.sin(i ** 2) * 10])],
  ["one edge again and again", ringBy((share, isEven) => (isEven ? [-10, -10] : [10 + share * 1e-9, 10]))],
  ["a circle", ringBy((share) => [9 * Math.cos(2 * Math.PI * share), 9 * Math.sin(2 * Math.PI * share)])],
])("many points are compared with few of the 5 000 edges of %s", (_, ring) => {
  const area = new RingArea(ring);
  const side = 140;
  const points = Array.from({ length: side ** 2 }, (_, i): [number, number] => [
    -10 + (20 * (Math.floor(i / side) + 0.3)) / side,
    -10 + (20 * ((i % side) + 0.4)) / side,
  ]);
  const bits = bitsOf(area, points);
  expect(area.compared).toBeLessThan((points.length * EDGES) / 10);
  for (let at = 0; at < points.length; at += 500) {
    expect(((bits[at >>> 5] ?? 0) >>> (at & 31)) & 1).toBe(expectedOnEarth(ring, points[at] ?? [0, 0]) ? 1 : 0);
  }
});

/** Converts degrees east of the 180th meridian (negative: west of it) to a longitude from -180 to 180. */
const onEarth = ([x, lat]: readonly [number, number]): [number, number] => [x < 0 ? x + 180 : x - 180, lat];
const isInside = (ring: Ring, [x, y]: readonly [number, number]): boolean | 0 =>
  pointInPolygon([x, y], [[...ring, ...ring.slice(0, 1)].map(([lng, lat]) => [lng, lat])]);

test("the parts of a cut ring cover its points, and no edge crosses the meridian", { tags: "sized" }, () => {
  const place = fc.tuple(fc.integer({ min: -40, max: 40 }), fc.integer({ min: -40, max: 40 }));
  fc.assert(
    fc.property(
      fc.array(place, { minLength: 3, maxLength: 12 }),
      fc.array(place, { minLength: 30, maxLength: 30 }),
      (ring, places) => {
        const parts = cutAtMeridian(ring.map(onEarth));
        for (const part of parts) {
          for (const [at, [lng]] of part.entries()) {
            expect(Math.abs(lng)).toBeLessThanOrEqual(180);
            expect(Math.abs(lng - (part[(at + 1) % part.length]?.[0] ?? 0))).toBeLessThanOrEqual(80);
          }
        }
        for (const [x, y] of places) {
          // With these offsets, the point is on no line between two points of the integer grid. A double represents them exactly.
          const point = [x + 0.5 + 2 ** -10, y + 0.5 + 2 ** -20] as const;
          const expected = isInside(ring, point);
          if (expected === 0) continue;
          const found = parts.filter((part) => isInside(part, onEarth(point)) === true);
          expect(found.length % 2 === 1).toBe(expected);
        }
      },
    ),
    { numRuns: sized({ short: 200, wide: 3_000 }) },
  );
});

/** A ring around a point of the 180th meridian. The ring does not cross itself. */
const star = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 40_000_000 }), fc.integer({ min: -1_000, max: 1_000 })), {
    minLength: 3,
    maxLength: 30,
  })
  .map((rays): [number, number][] =>
    rays.map(([radius, lng], i) => {
      const angle = ((i + lng / 3_000) / rays.length) * 2 * Math.PI;
      const round = (value: number): number => Math.round(value * 1e7) / 1e7;
      const [x, y] = [(radius / 1e6) * Math.cos(angle), (radius / 1e6) * Math.sin(angle)].map(round);
      return [round(onEarth([x ?? 0, 0])[0]), y ?? 0];
    }),
  );

test("a ring that was cut is joined to the same ring, and other rings are not joined", { tags: "sized" }, () => {
  const open = (ring: Ring) => exteriorRing(ring.map(([lng, lat]) => [lng, lat])).slice(0, -1);
  fc.assert(
    fc.property(star, (ring) => {
      const parts = cutAtMeridian(ring).map(open);
      if (parts.length < 2) return;
      const joined = joinedAtMeridian(parts);
      expect(joined).toBeDefined();
      expect(signOf({ name: "T", polygon: joined })).toBe(signOf({ name: "T", polygon: ring }));
      expect(withoutCuts(ring)).toHaveLength(joined?.length ?? 0);
    }),
    { numRuns: sized({ short: 200, wide: 3_000 }) },
  );
  const square = (west: number, south: number): Ring => rectangle(west, south, west + 10, south + 10);
  expect(joinedAtMeridian([square(170, 0), square(-180, 0)])).toHaveLength(4);
  expect(joinedAtMeridian([square(170, 0), square(-180, 5)])).toBeUndefined();
  expect(joinedAtMeridian([square(170, 0), square(-180, 0), square(50, 0)])).toBeUndefined();
  expect(joinedAtMeridian([square(10, 0), square(20, 0)])).toBeUndefined();
});

test("each of many parts that do not join is read a few times", () => {
  let reads = 0;
  const parts = Array.from({ length: 2_000 }, () => ringOf("0 0, 1 0, 0 1"));
  const counted = new Proxy(parts, {
    get: (target, key) => {
      reads++;
      return Reflect.get(target, key);
    },
  });
  expect(joinedAtMeridian(counted)).toBeUndefined();
  expect(reads).toBeLessThan(20 * parts.length);
});
