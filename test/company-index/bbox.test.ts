/**
 * Tests that the geohash ranges for a bounding box (bbox) cover the box and little else, and that the bbox filter finds exactly the rows
 * in the box.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Box, insideBox } from "#shared/company-index/criteria.ts";
import { GEOHASH_BITS, geohashAt, geohashRanges } from "#shared/company-index/geohash.ts";
import { BboxFilter } from "#shared/company-index/search/row-filter.ts";

const lat = fc.oneof(fc.double({ min: -90, max: 90, noNaN: true }), fc.constantFrom(-90, -45, 0, 33.448, 45, 90));
const lng = fc.oneof(fc.double({ min: -180, max: 180, noNaN: true }), fc.constantFrom(-180, -90, 0, 90, 180));
/**
 * Bounding boxes of any size, and small bounding boxes. The west edge may have a greater longitude than the east edge, because a box may
 * cross the 180th meridian.
 */
const box: fc.Arbitrary<Box> = fc.oneof(
  fc.tuple(lng, lat, lng, lat).map(([a, b, c, d]): Box => [a, Math.min(b, d), c, Math.max(b, d)]),
  fc
    .tuple(lng, lat, fc.double({ min: 0, max: 1, noNaN: true }))
    .map(([x, y, size]): Box => [x, y, Math.min(180, x + size), Math.min(90, y + size)]),
);

const isCovered = (ranges: ReturnType<typeof geohashRanges>, place: number): boolean =>
  ranges.some(({ from, to }) => from <= place && place < to);

/** Returns the point at the fractions `x` and `y` of the box's width and height. 0 and 1 are its edges. */
const within = ([minLng, minLat, maxLng, maxLat]: Box, x: number, y: number): [lat: number, lng: number] => {
  const width = minLng <= maxLng ? maxLng - minLng : maxLng - minLng + 360;
  const east = minLng + x * width;
  return [minLat + y * (maxLat - minLat), east > 180 ? east - 360 : east];
};

describe("geohash ranges", () => {
  const part = fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), fc.constantFrom(0, 1));
  test("cover every point of the box, sorted and disjoint", () => {
    fc.assert(
      fc.property(box, fc.array(fc.tuple(part, part), { minLength: 20, maxLength: 20 }), (bbox, points) => {
        const ranges = geohashRanges(bbox);
        for (const [x, y] of points) {
          const [atLat, atLng] = within(bbox, x, y);
          if (insideBox(bbox, atLat, atLng)) expect(isCovered(ranges, geohashAt(atLat, atLng))).toBe(true);
        }
        for (const [i, { from, to }] of ranges.entries()) {
          expect(from).toBeGreaterThan(ranges[i - 1]?.to ?? -1);
          expect(to).toBeGreaterThan(from);
          expect(to).toBeLessThanOrEqual(2 ** GEOHASH_BITS);
        }
        expect(ranges.length).toBeLessThan(220);
      }),
      { numRuns: 1_000 },
    );
  });

  test("cover at most a sixth more than the area of a square bbox", () => {
    for (const [west, south, size] of [
      [-105.09, 39.639, 0.2],
      [-0.1, -0.1, 0.2],
      [12.3, 45.6, 5],
      [179.8, 10, 0.01],
    ] as const) {
      const bbox: Box = [west, south, west + size, south + size];
      const covered = geohashRanges(bbox).reduce((sum, { from, to }) => sum + to - from, 0);
      const area = (size / 360) * (size / 180) * 2 ** GEOHASH_BITS;
      expect(covered / area, `${bbox}`).toBeLessThan(1 + 1 / 6);
    }
  });
});

const rows = fc.array(
  fc.tuple(fc.option(lat, { freq: 9, nil: Number.NaN }), fc.option(lng, { freq: 9, nil: Number.NaN })),
  { minLength: 1, maxLength: 300, size: "max" },
);

test("the bbox filter finds the rows in the box, and compares few rows outside the box", () => {
  fc.assert(
    fc.property(rows, box, (given, bbox) => {
      const sorted = given.toSorted((a, b) => atGeohash(a) - atGeohash(b));
      const geo = {
        lat: Float64Array.from(sorted, ([y]) => y),
        lng: Float64Array.from(sorted, ([, x]) => x),
        updatedAfter: new Float64Array(sorted.length),
      };
      const ranges = geohashRanges(bbox);
      const filter = new BboxFilter(geo, bbox, ranges);
      const expected = sorted.flatMap(([y, x], row) =>
        !Number.isNaN(y) && !Number.isNaN(x) && insideBox(bbox, y, x) ? [row] : [],
      );
      expect([...filter.rows()]).toEqual(expected);
      expect(filter.compared).toBe(filter.size);
      const covered = sorted.filter((row) => isCovered(ranges, atGeohash(row)));
      expect(filter.size).toBe(covered.length);
      for (const row of sorted.keys()) expect(filter.has(row)).toBe(expected.includes(row));
    }),
    { numRuns: 400 },
  );
});

const atGeohash = ([y, x]: [number, number]): number => (Number.isNaN(y) || Number.isNaN(x) ? -1 : geohashAt(y, x));
