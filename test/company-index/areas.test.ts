/** Tests areas on the map (polygons and circles): their ranges of geohashes, and the order of matches by their distance from a point. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { circleArea, polygonArea } from "#shared/company-index/areas.ts";
import { type Area, insideBox, type LatLng } from "#shared/company-index/criteria.ts";
import { geohashAt } from "#shared/company-index/geohash.ts";
import type { IndexRow } from "#shared/company-index/record.ts";
import { inOrder, pageOf } from "#shared/company-index/search/page.ts";
import { boxAround, metersBetween } from "#shared/geometry/distance.ts";
import type { Ring } from "#shared/geometry/ring.ts";

const lats = fc.oneof(fc.double({ min: -90, max: 90, noNaN: true }), fc.constantFrom(-90, 0, 90, 89.9999));
const lngs = fc.oneof(fc.double({ min: -180, max: 180, noNaN: true }), fc.constantFrom(-180, 0, 180, 179.9999));
const points = fc.record({ lat: lats, lng: lngs });

/**
 * Returns what the area's geohash ranges alone say about the point: it is inside the area, it is outside, or it must be compared with the
 * exact boundary.
 */
function rangeAt({ ranges }: Area, { lat, lng }: LatLng): "inside" | "outside" | "compare" {
  const geohash = geohashAt(lat, lng);
  const range = ranges.find(({ from, to }) => geohash >= from && geohash < to);
  if (range === undefined) return "outside";
  return range.isInside ? "inside" : "compare";
}

function expectCovered(area: Area, point: LatLng): void {
  const isInside = area.contains(point.lat, point.lng);
  const found = rangeAt(area, point);
  if (found !== "compare") expect(found).toBe(isInside ? "inside" : "outside");
}

test("the ranges of a polygon contain it, and none of those inside contains a point outside", () => {
  const small = fc.tuple(fc.double({ min: -1, max: 1, noNaN: true }), fc.double({ min: -1, max: 1, noNaN: true }));
  fc.assert(
    fc.property(
      fc.array(small, { minLength: 3, maxLength: 20 }),
      points,
      fc.array(small, { minLength: 20, maxLength: 20 }),
      (ring, { lat, lng }, near) => {
        const moved = ring.map(([x, y]): [number, number] => [
          Math.max(-180, Math.min(180, lng + x)),
          Math.max(-90, Math.min(90, lat + y)),
        ]);
        const area = polygonArea(moved);
        for (const [x, y] of moved) expectCovered(area, { lat: y, lng: x });
        for (const [x, y] of near) {
          expectCovered(area, {
            lat: Math.max(-90, Math.min(90, lat + y)),
            lng: Math.max(-180, Math.min(180, lng + x)),
          });
        }
      },
    ),
    { numRuns: 200 },
  );
});

test("the box and the ranges of a polygon across the 180th meridian contain it", () => {
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
          expectCovered(area, { lat, lng });
          if (area.contains(lat, lng)) expect(area.box !== null && insideBox(area.box, lat, lng)).toBe(true);
        }
        for (const [lng, lat] of ring) expect(area.contains(lat, lng)).toBe(true);
      },
    ),
    { numRuns: 300 },
  );
});

test("a ring of 5 000 points that crosses itself everywhere has few ranges", () => {
  const ring: Ring = Array.from({ length: 5_000 }, (_, i) => [
    Math.sin(i * 2.4) * 10,
    i % 2 === 0 ? -10 + i / 1e6 : 10,
  ]);
  const area = polygonArea(ring);
  expect(area.ranges.length).toBeLessThan(1_000);
  for (let i = 0; i < 200; i++) expectCovered(area, { lat: Math.sin(i) * 11, lng: Math.cos(i * 3) * 11 });
});

test("the box and the ranges of a circle contain each point within its distance, over the antimeridian and the poles too", () => {
  fc.assert(
    fc.property(points, points, fc.double({ min: 0, max: 1, noNaN: true }), (center, point, share) => {
      const meters = metersBetween(center, point.lat, point.lng);
      // The point is exactly on the circle, so the geohash ranges cannot decide whether it is inside.
      expect(rangeAt(circleArea(center, meters), point)).toBe("compare");
      expectCovered(circleArea(center, meters * share), point);
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
  places.map(({ lat, lng }, i) => ({
    ...{
      id: i + 1,
      version: 1,
      createdAt: i,
      updatedAt: i,
      statusId: null,
      assignedToUserId: null,
      tagIds: [],
      city: null,
    },
    ...{ lat, lng, text: "", sourceId: null, phoneDigits: "" },
  }));

test("pages near a point have the nearest matches first, and of equally distant ones the lowest id", () => {
  // There are only a few different points, so that distances are often equal.
  const places = fc.array(
    fc.record({ lat: fc.constantFrom(-1, 0, 1, 90), lng: fc.constantFrom(-180, -1, 0, 1, 180) }),
    {
      maxLength: 60,
    },
  );
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
