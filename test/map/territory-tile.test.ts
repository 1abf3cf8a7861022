/** Tests that a point is inside the polygon drawn in a tile exactly if it is inside the territory, also if the border crosses itself. */
import fc from "fast-check";
import pointInPolygon from "point-in-polygon-hao";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { clipped, doubleArea, simplified } from "#shared/geometry/clip.ts";
import { BUFFER, shapeOf, tileOfShapes } from "#shared/map/territory-tile.ts";
import { type Polygon, packPolygon } from "#shared/reference/polygon.ts";
import { decodedTile } from "../harness/decoded-tile.ts";
import { rectangle, ringOf } from "../harness/rings.ts";
import { present } from "../harness/shapes.ts";
import { sized } from "../harness/tier.ts";

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

/** A star-shaped ring, which does not cross itself. It may be convex or not, and may go around its centre in either direction. */
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

/** Makes a ring that may cross, touch or overlap itself, because its points are in any order on a small grid. */
const tangled = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 0, max: 8 })), { minLength: 3, maxLength: 12 })
  .map((ring): Polygon => ring.map(([column, row]) => [-104.5 + column / 4, 38.5 + row / 4]));

/** Returns how many times the ring goes around the point clockwise on the screen. */
function windingOf(ring: readonly (readonly [number, number])[], [x, y]: readonly [number, number]): number {
  return ring.reduce((sum, [x2, y2], i) => {
    const [x1, y1] = ring.at(i - 1) ?? [0, 0];
    if (y1 > y === y2 > y || x > x1 + ((y - y1) * (x2 - x1)) / (y2 - y1)) return sum;
    return sum + (y2 > y1 ? 1 : -1);
  }, 0);
}

const areaOf = (ring: readonly (readonly [number, number])[] = []): number => doubleArea(ring.slice(0, -1));

const shapeOfPolygon = (id: number, polygon: Polygon) =>
  shapeOf({ id, version: 1, name: `T ${id}`, assignedToUserId: null, polygon: packPolygon(polygon) });

const at = (polygon: Polygon, z: number, x: number, y: number) =>
  tileOfShapes([shapeOfPolygon(7, polygon)], { z, x, y });

describe("a territory in a tile", () => {
  test("covers the same points as the territory on the map, except near its simplified edge", { tags: "sized" }, () => {
    const position = fc.integer({ min: 0, max: EXTENT });
    const places = fc.array(fc.tuple(position, position), { minLength: 30, maxLength: 30 });
    fc.assert(
      fc.property(
        fc.oneof(star, tangled),
        fc.integer({ min: 4, max: 9 }),
        places,
        fc.integer({ min: -1, max: 1 }),
        (polygon, z, points, step) => {
          const tiles = 2 ** z;
          const [x, y] = [Math.floor(((-103.5 + 180) / 360) * tiles) + step, Math.floor(0.3795 * tiles)];
          const expected = polygon.map((point) => unitsOf(point, z, x, y));
          const bytes = at(polygon, z, x, y);
          const [feature] = bytes === undefined ? [] : (decodedTile(bytes).territories ?? []);
          const shown = (feature?.lines ?? []).map((ring) => ring.map(([px = 0, py = 0]) => [px, py] as const));
          if (feature !== undefined) {
            expect(feature).toMatchObject({ id: 7, type: 3, properties: { id: 7, name: "T 7" } });
            // By the specification of vector tiles, a ring with a positive area is an outer ring.
            expect(areaOf(shown[0])).toBeGreaterThan(0);
            for (const position of shown.flat(2))
              expect(Math.abs(position - EXTENT / 2)).toBeLessThanOrEqual(EXTENT / 2 + BUFFER);
          }
          for (const point of points) {
            if (distanceTo(expected, point) < 4) continue;
            const isInside = pointInPolygon(point, [[...expected, expected[0] ?? [0, 0]]]) !== false;
            // Outer rings go around their points clockwise, and holes counter-clockwise. A ring that crosses itself would go around some
            // points in the wrong direction, or twice.
            const windings = shown.map((ring) => windingOf(ring, point));
            const areRight = windings.map((winding, i) => Math.abs(winding) <= 1 && winding * areaOf(shown[i]) >= 0);
            expect(areRight).not.toContain(false);
            const sum = windings.reduce((before, winding) => before + winding, 0);
            expect(sum, `${point}`).toBe(isInside ? 1 : 0);
          }
        },
      ),
      { numRuns: sized({ short: 120, wide: 1_000 }) },
    );
  });

  test("of one ring that does not cross itself has one ring", () => {
    fc.assert(
      fc.property(star, (polygon) => {
        const [feature] = decodedTile(at(polygon, 4, 3, 6) ?? new Uint8Array()).territories ?? [];
        expect(feature?.lines.length ?? 1).toBe(1);
      }),
    );
  });

  test("whose edges cross each other has a ring for each of its parts, and holes", () => {
    const ringsOf = (...polygon: Polygon) => decodedTile(present(at(polygon, 4, 3, 6))).territories?.[0]?.lines ?? [];
    const areasOf = (...polygon: Polygon) => ringsOf(...polygon).map(areaOf);
    // The two halves of a bow-tie go around in different directions. In the tile, both must be outer rings, which have a positive area.
    const [west = 0, east = 0, ...more] = areasOf([-104, 39], [-102, 41], [-102, 39], [-104, 41]);
    expect(more).toEqual([]);
    expect(west).toBeGreaterThan(0);
    expect(Math.abs(west - east)).toBeLessThan(west / 50);
    // One ring around a large square, and then a smaller one inside it. By the even-odd rule, the small square is a hole.
    const [outer = 0, hole = 0, ...others] = areasOf(
      ...ringOf("-104 39, -104 41, -102 41, -102 39, -104 39"),
      ...ringOf("-103.5 39.5, -103.5 40.5, -102.5 40.5, -102.5 39.5, -103.5 39.5"),
    );
    expect(others).toEqual([]);
    expect(outer).toBeGreaterThan(0);
    expect(hole / outer).toBeCloseTo(-1 / 4, 1);
  });

  test("of 5 000 points whose edges cross each other everywhere is drawn as one ring", () => {
    const scribble = Array.from({ length: 5_000 }, (_, i): [number, number] => [
      -104 + ((i * 7_919) % 5_000) / 5_000,
      39 + ((i * 104_729) % 4_999) / 4_999,
    ]);
    expect(decodedTile(present(at(scribble, 6, 13, 24))).territories?.[0]?.lines).toHaveLength(1);
  });

  test("is left out if it is outside, or too small to be seen", () => {
    const small = ringOf("-104 39, -103.99999 39, -104 39.00001");
    expect(at(small, 0, 0, 0)).toBeUndefined();
    const [x, y] = unitsOf([-104, 39], 18, 0, 0).map((units) => Math.floor(units / EXTENT));
    expect(at(small, 18, (x ?? 0) + 1, y ?? 0)).toBeUndefined();
    expect(at(small, 18, x ?? 0, y ?? 0)).toBeDefined();
  });

  test("around a pole, or as large as the earth, is drawn to the edge of the map", () => {
    const [feature] = decodedTile(present(at(rectangle(-180, -90, 180, 90), 0, 0, 0))).territories ?? [];
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

describe("a tile of many territories", () => {
  const zigzag = (id: number) =>
    shapeOfPolygon(
      id,
      Array.from({ length: 5_000 }, (_, i): [number, number] => [
        -104 + (i + id) / 5_000,
        i === 0 || i === 4_999 ? 38.9 : i % 2 === 0 ? 39 : 40,
      ]),
    );
  const square = shapeOfPolygon(7, rectangle(-104, 39, -103, 40));

  test("draws the bounding boxes of territories that need too much work, and contains their number in the layer `meta`", () => {
    const zigzags = Array.from({ length: 100 }, (_, i) => zigzag(10 + i));
    const { territories = [], meta } = decodedTile(present(tileOfShapes([...zigzags, square], { z: 6, x: 13, y: 24 })));
    expect(territories.map(({ id }) => id)).toEqual([...zigzags.map(({ id }) => id), 7]);
    const boxes = territories.filter(({ id, lines }) => id !== 7 && (lines[0]?.length ?? 0) < 10);
    expect(boxes.length).toBeGreaterThan(40);
    expect(boxes.length).toBeLessThan(90);
    expect(meta?.map(({ properties }) => properties)).toEqual([{ boxes: boxes.length }]);
    const alone = decodedTile(present(tileOfShapes([square], { z: 6, x: 13, y: 24 })));
    expect(territories.at(-1)?.lines).toEqual(alone.territories?.[0]?.lines);
    expect(alone.meta).toBeUndefined();
  });

  test("measures each edge of a ring with many loops a few times", () => {
    const lengths = vi.spyOn(Math, "hypot");
    onTestFinished(() => lengths.mockRestore());
    const curls = Array.from({ length: 5_000 }, (_, i): [number, number] => {
      const angle = (i / 5_000) * 2 * Math.PI * 60;
      return [-104 + i / 1_800 + 0.05 * Math.sin(angle), 39 + 0.08 * Math.cos(angle) + i / 30_000];
    });
    expect(decodedTile(present(at(curls, 7, 27, 48))).territories?.[0]?.lines.length).toBeGreaterThan(60);
    expect(lengths.mock.calls.length).toBeLessThan(50_000);
  });

  test("draws the box of a zigzag whose parts cancel each other out", () => {
    const crossed = Array.from({ length: 5_000 }, (_, i): [number, number] => [-104 + i / 5_000, 39 + (i % 2)]);
    const { territories, meta } = decodedTile(present(at(crossed, 6, 13, 24)));
    expect(territories?.[0]?.lines[0]).toHaveLength(5);
    expect(meta?.map(({ properties }) => properties)).toEqual([{ boxes: 1 }]);
    expect(at(crossed, 6, 20, 24)).toBeUndefined();
  });

  test("draws a territory across the 180th meridian on both sides of the map", () => {
    const widthAt = (z: number, x: number, y: number): number[] => {
      const bytes = at(rectangle(170, 0, -170, 10), z, x, y);
      if (bytes === undefined) return [];
      const lines = decodedTile(bytes).territories?.[0]?.lines ?? [];
      return lines.map((line) => {
        const columns = line.map(([px = 0]) => Math.max(0, Math.min(EXTENT, px)));
        return Math.max(...columns) - Math.min(...columns);
      });
    };
    const [west, east] = [Math.round((10 / 360) * EXTENT * 8), Math.round((10 / 360) * EXTENT * 8)];
    expect([widthAt(3, 0, 3), widthAt(3, 7, 3), widthAt(3, 3, 3)]).toEqual([[west], [east], []]);
    expect(widthAt(0, 0, 0)).toHaveLength(2);
  });
});

test("a simplified ring is nowhere farther from the ring than the tolerance, and a clipped ring of a square has the area of both", {
  tags: "sized",
}, () => {
  const position = fc.integer({ min: 0, max: 60 });
  const ring = fc.array(fc.tuple(position, position), { minLength: 3, maxLength: 30 });
  fc.assert(
    fc.property(ring, fc.integer({ min: 1, max: 20 }), (given, tolerance) => {
      const fewer = simplified(given, tolerance);
      for (const point of given) expect(distanceTo(fewer, point)).toBeLessThanOrEqual(tolerance + 1e-9);
    }),
    { numRuns: sized({ short: 60, wide: 500 }) },
  );
  expect(Math.abs(doubleArea(clipped(rectangle(-5, -5, 5, 5), 0, 3)))).toBe(18);
});
