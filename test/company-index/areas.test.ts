/** Tests areas on the map (boxes, polygons and circles), the geohash ranges that cover them, and the order of matches by distance. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { circleArea, polygonArea } from "#shared/company-index/areas.ts";
import { type Box, insideBox, type LatLng } from "#shared/company-index/criteria.ts";
import { GEOHASH_BITS, geohashAt, geohashRanges } from "#shared/company-index/geohash.ts";
import type { IndexRow } from "#shared/company-index/record.ts";
import { inOrder, pageOf } from "#shared/company-index/search/page.ts";
import { BboxFilter } from "#shared/company-index/search/row-filter.ts";
import { boxAround, metersBetween } from "#shared/geometry/distance.ts";
import { ringOf } from "../harness/rings.ts";
import { sized } from "../harness/tier.ts";
import { plainRow } from "./plain-rows.ts";

const degrees = (limit: number, ...more: number[]) =>
  fc.oneof(fc.double({ min: -limit, max: limit, noNaN: true }), fc.constantFrom(-limit, 0, limit, ...more));
const lat = degrees(90, -45, 33.448, 45, 89.9999);
const lng = degrees(180, -90, 90, 179.9999);
const points = fc.record({ lat, lng });

test("the box of a polygon across the 180th meridian contains it", () => {
  const nearMeridian = fc.tuple(fc.integer({ min: -40, max: 40 }), fc.integer({ min: -40, max: 40 }));
  const onMap = ([x, y]: readonly [number, number]): [number, number] => [x < 0 ? x + 180 : x - 180, y];
  fc.assert(
    fc.property(
      fc.array(nearMeridian, { minLength: 3, maxLength: 12 }),
      fc.array(nearMeridian, { minLength: 60, maxLength: 60 }),
      (shape, places) => {
        const ring = shape.map(onMap);
        const area = polygonArea(ring);
        for (const [lng, lat] of [...ring, ...places.map(onMap)]) {
          if (area.contains(lat, lng)) expect(area.box !== null && insideBox(area.box, lat, lng)).toBe(true);
        }
        for (const [lng, lat] of ring) expect(area.contains(lat, lng)).toBe(true);
      },
    ),
    { numRuns: 300 },
  );
});

test("an area tests the rows of a segment once, and returns the same result for each further search", () => {
  const area = polygonArea(ringOf("0 0, 2 0, 0 2"));
  const places = { lat: Float64Array.of(0.5, 2, Number.NaN, 1), lng: Float64Array.of(0.5, 2, 0, 1) };
  expect([...area.rowsInside(places)]).toEqual([0b1001]);
  expect(area.rowsInside(places)).toBe(area.rowsInside(places));
  expect(area.rowsInside({ ...places })).not.toBe(area.rowsInside(places));
});

test("the box of a circle contains each point within its distance, also at the poles", { tags: "sized" }, () => {
  fc.assert(
    fc.property(points, points, fc.double({ min: 0, max: 1, noNaN: true }), (center, point, share) => {
      const meters = metersBetween(center, point.lat, point.lng);
      expect(circleArea(center, meters).contains(point.lat, point.lng)).toBe(true);
      expect(circleArea(center, meters * share * 0.999).contains(point.lat, point.lng)).toBe(meters === 0);
      const [west, south, east, north] = boxAround(center, meters);
      expect(point.lat >= south && point.lat <= north).toBe(true);
      expect(west <= east ? point.lng >= west && point.lng <= east : point.lng >= west || point.lng <= east).toBe(true);
    }),
    { numRuns: sized({ short: 150, wide: 1_000 }) },
  );
});

test("the distance agrees with the spherical law of cosines and with known distances", () => {
  const radians = (degrees: number): number => (degrees * Math.PI) / 180;
  fc.assert(
    fc.property(points, points, (a, b) => {
      const [latA, latB, dLng] = [radians(a.lat), radians(b.lat), radians(b.lng - a.lng)];
      const cosine = Math.sin(latA) * Math.sin(latB) + Math.cos(latA) * Math.cos(latB) * Math.cos(dLng);
      const expected = 6_371_008.8 * Math.acos(Math.max(-1, Math.min(1, cosine)));
      expect(Math.abs(metersBetween(a, b.lat, b.lng) - expected)).toBeLessThan(1);
    }),
  );
  // Each distance is one degree of a great circle: on the equator, across the antimeridian, and over the pole.
  expect(metersBetween({ lat: 0, lng: 0 }, 0, 1)).toBeCloseTo(111_195.08, 1);
  expect(metersBetween({ lat: 0, lng: 179.5 }, 0, -179.5)).toBeCloseTo(111_195.08, 1);
  expect(metersBetween({ lat: 89.5, lng: 0 }, 89.5, 180)).toBeCloseTo(111_195.08, 1);
});

const unflushed = (places: readonly LatLng[]): IndexRow[] =>
  places.map(({ lat, lng }, i) => plainRow({ id: i + 1, createdAt: i, lat, lng }));

test("pages near a point have the nearest matches first, and of equally distant ones the lowest id", () => {
  // There are only a few different points, so that distances are often equal.
  const place = fc.record({ lat: fc.constantFrom(-1, 0, 1, 90), lng: fc.constantFrom(-180, -1, 0, 1, 180) });
  const places = fc.array(place, { maxLength: 60 });
  fc.assert(
    fc.property(places, points, fc.nat(50), fc.integer({ min: 1, max: 20 }), (found, near, offset, count) => {
      const rows = unflushed(found);
      const matches = { segments: [], unflushed: rows, total: rows.length, looked: 0, near };
      const all = rows
        .map(({ id, lat, lng }) => ({ id, version: 1, distanceMeters: metersBetween(near, lat ?? 0, lng ?? 0) }))
        .sort((a, b) => a.distanceMeters - b.distanceMeters || a.id - b.id);
      expect(pageOf(matches, offset, count)).toEqual(all.slice(offset, offset + count));
      expect(Array.from(inOrder(matches), ({ id }) => id)).toEqual(all.map(({ id }) => id));
    }),
  );
});

/** A box may cross the 180th meridian. The longitude of its west edge is then greater than that of its east edge. */
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

const part = fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), fc.constantFrom(0, 1));
test("geohash ranges cover every point of the box, sorted and disjoint", { tags: "sized" }, () => {
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
    { numRuns: sized({ short: 200, wide: 3_000 }) },
  );
});

test("geohash ranges cover at most a sixth more than the area of a square bbox", () => {
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

const rows = fc.array(
  fc.tuple(fc.option(lat, { freq: 9, nil: Number.NaN }), fc.option(lng, { freq: 9, nil: Number.NaN })),
  { minLength: 1, maxLength: 300, size: "max" },
);

test("the bbox filter finds the rows in the box, and compares few rows outside the box", { tags: "sized" }, () => {
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
    { numRuns: sized({ short: 100, wide: 1_000 }) },
  );
});

const atGeohash = ([y, x]: [number, number]): number => (Number.isNaN(y) || Number.isNaN(x) ? -1 : geohashAt(y, x));
