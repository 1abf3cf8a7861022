/** Tests areas on the map (polygons and circles): their boxes, and the order of matches by their distance from a point. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { circleArea, polygonArea } from "#shared/company-index/areas.ts";
import { insideBox, type LatLng } from "#shared/company-index/criteria.ts";
import type { IndexRow } from "#shared/company-index/record.ts";
import { inOrder, pageOf } from "#shared/company-index/search/page.ts";
import { boxAround, metersBetween } from "#shared/geometry/distance.ts";
import { plainRow } from "./plain-rows.ts";

const lats = fc.oneof(fc.double({ min: -90, max: 90, noNaN: true }), fc.constantFrom(-90, 0, 90, 89.9999));
const lngs = fc.oneof(fc.double({ min: -180, max: 180, noNaN: true }), fc.constantFrom(-180, 0, 180, 179.9999));
const points = fc.record({ lat: lats, lng: lngs });

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

test("the rows of a segment are tested once", () => {
  const area = polygonArea([
    [0, 0],
    [2, 0],
    [0, 2],
  ]);
  const places = { lat: Float64Array.of(0.5, 2, Number.NaN, 1), lng: Float64Array.of(0.5, 2, 0, 1) };
  expect([...area.rowsInside(places)]).toEqual([0b1001]);
  expect(area.rowsInside(places)).toBe(area.rowsInside(places));
  expect(area.rowsInside({ ...places })).not.toBe(area.rowsInside(places));
});

test("the box of a circle contains each point within its distance, over the antimeridian and the poles too", () => {
  fc.assert(
    fc.property(points, points, fc.double({ min: 0, max: 1, noNaN: true }), (center, point, share) => {
      const meters = metersBetween(center, point.lat, point.lng);
      expect(circleArea(center, meters).contains(point.lat, point.lng)).toBe(true);
      expect(circleArea(center, meters * share * 0.999).contains(point.lat, point.lng)).toBe(meters === 0);
      const [west, south, east, north] = boxAround(center, meters);
      expect(point.lat >= south && point.lat <= north).toBe(true);
      expect(west <= east ? point.lng >= west && point.lng <= east : point.lng >= west || point.lng <= east).toBe(true);
    }),
    { numRuns: 500 },
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
