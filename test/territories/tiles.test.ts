/**
 * Tests tiles of territories, which an independent library decodes. A point must be inside the drawn polygon exactly if it is inside the
 * territory.
 */
import fc from "fast-check";
import pointInPolygon from "point-in-polygon-hao";
import { describe, expect, test } from "vitest";
import { clipped, doubleArea, simplified } from "#shared/geometry/clip.ts";
import { type Polygon, packPolygon } from "#shared/reference/polygon.ts";
import { BUFFER, tileOfShapes } from "#shared/territories/tiles.ts";
import { decodedTile } from "../harness/decoded-tile.ts";

const EXTENT = 4_096;

/** Returns where a coordinate lies in a tile, in units of the tile, by the formula of the OpenStreetMap wiki. */
function unitsOf([lng, lat]: readonly [number, number], z: number, x: number, y: number): [number, number] {
  const tiles = 2 ** z;
  const northing = (1 - Math.asinh(Math.tan((lat * Math.PI) / 180)) / Math.PI) / 2;
  return [(((lng + 180) / 360) * tiles - x) * EXTENT, (northing * tiles - y) * EXTENT];
}

function distanceTo(ring: readonly (readonly [number, number])[], [x, y]: readonly [number, number]): number {
  return Math.min(
    ...ring.map(([x1, y1], i) => {
      const [x2, y2] = ring[(i + 1) % ring.length] ?? [0, 0];
      const length = (x2 - x1) ** 2 + (y2 - y1) ** 2;
      const along = length === 0 ? 0 : Math.max(0, Math.min(1, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length));
      return Math.hypot(x - x1 - along * (x2 - x1), y - y1 - along * (y2 - y1));
    }),
  );
}

/** A star around a centre. It is a ring that does not cross itself. It may be convex or not, and may have either direction. */
const star = fc
  .tuple(
    fc.double({ min: -104, max: -103, noNaN: true }),
    fc.double({ min: 39, max: 40, noNaN: true }),
    fc.array(fc.double({ min: 0.05, max: 2, noNaN: true }), { minLength: 3, maxLength: 40 }),
    fc.boolean(),
    fc.boolean(),
  )
  .map(([lng, lat, radii, isReversed, isClosed]): Polygon => {
    const ring = radii.map((radius, i): [number, number] => {
      const angle = (i / radii.length) * 2 * Math.PI;
      return [lng + radius * Math.cos(angle), lat + radius * Math.sin(angle)];
    });
    const [first = [0, 0]] = ring;
    const whole = isClosed ? [...ring, first] : ring;
    return isReversed ? whole.toReversed() : whole;
  });

const at = (polygon: Polygon, z: number, x: number, y: number) =>
  tileOfShapes([{ id: 7, name: "Seven", assignedToUserId: null, polygon: packPolygon(polygon) }], { z, x, y });

describe("a territory in a tile", () => {
  test("covers the points that it covers on the map, apart from its simplified edge", () => {
    const places = fc.array(fc.tuple(fc.integer({ min: 0, max: EXTENT }), fc.integer({ min: 0, max: EXTENT })), {
      minLength: 30,
      maxLength: 30,
    });
    fc.assert(
      fc.property(
        star,
        fc.integer({ min: 4, max: 9 }),
        places,
        fc.integer({ min: -1, max: 1 }),
        (polygon, z, points, step) => {
          const tiles = 2 ** z;
          const [x, y] = [Math.floor(((-103.5 + 180) / 360) * tiles) + step, Math.floor(0.3795 * tiles)];
          const expected = polygon.map((point) => unitsOf(point, z, x, y));
          const bytes = at(polygon, z, x, y);
          const [feature] = bytes === undefined ? [] : (decodedTile(bytes).territories ?? []);
          const shown = feature?.lines[0] ?? [];
          if (feature !== undefined) {
            expect(feature).toMatchObject({ id: 7, type: 3, properties: { id: 7, name: "Seven" } });
            expect(feature.lines).toHaveLength(1);
            // By the specification of vector tiles, a ring with a positive area is an outer ring.
            expect(doubleArea(shown.slice(0, -1))).toBeGreaterThan(0);
            for (const position of shown.flat())
              expect(Math.abs(position - EXTENT / 2)).toBeLessThanOrEqual(EXTENT / 2 + BUFFER);
          }
          for (const point of points) {
            if (distanceTo(expected, point) < 4) continue;
            const isInside = pointInPolygon(point, [[...expected, expected[0] ?? [0, 0]]]) !== false;
            const isShown = shown.length > 0 && pointInPolygon(point, [shown.map(([px, py]) => [px, py])]) !== false;
            expect(isShown, `${point}`).toBe(isInside);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  test("is left out if it is outside, or too small to be seen", () => {
    const small: Polygon = [
      [-104, 39],
      [-104 + 1e-5, 39],
      [-104, 39 + 1e-5],
    ];
    expect(at(small, 0, 0, 0)).toBeUndefined();
    const [x, y] = unitsOf([-104, 39], 18, 0, 0).map((units) => Math.floor(units / EXTENT));
    expect(at(small, 18, (x ?? 0) + 1, y ?? 0)).toBeUndefined();
    expect(at(small, 18, x ?? 0, y ?? 0)).toBeDefined();
  });

  test("around a pole, or as large as the earth, is drawn to the edge of the map", () => {
    const earth: Polygon = [
      [-180, -90],
      [180, -90],
      [180, 90],
      [-180, 90],
    ];
    const [feature] = decodedTile(at(earth, 0, 0, 0) ?? new Uint8Array()).territories ?? [];
    expect(doubleArea(feature?.lines[0]?.slice(0, -1) ?? [])).toBe(2 * EXTENT ** 2);
  });

  test("of 5 000 points has few points in a tile of a low zoom", () => {
    const circle = Array.from({ length: 5_000 }, (_, i): [number, number] => [
      -104 + Math.cos((i / 2_500) * Math.PI),
      39 + Math.sin((i / 2_500) * Math.PI),
    ]);
    expect(at(circle, 6, 13, 24)?.length).toBeLessThan(400);
  });
});

test("a simplified ring is nowhere farther from the ring than the tolerance, and a clipped ring of a square has the area of both", () => {
  const ring = fc.array(fc.tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 60 })), {
    minLength: 3,
    maxLength: 30,
  });
  fc.assert(
    fc.property(ring, fc.integer({ min: 1, max: 20 }), (given, tolerance) => {
      const fewer = simplified(given, tolerance);
      for (const point of given) expect(distanceTo(fewer, point)).toBeLessThanOrEqual(tolerance + 1e-9);
    }),
    { numRuns: 200 },
  );
  const square = [
    [-5, 5],
    [5, 5],
    [5, -5],
    [-5, -5],
  ] as const;
  expect(Math.abs(doubleArea(clipped(square, 0, 3)))).toBe(18);
});
