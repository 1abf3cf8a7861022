/** Tests how rings are cut at the 180th meridian for GeoJSON, and joined again. */
import fc from "fast-check";
import pointInPolygon from "point-in-polygon-hao";
import { expect, test } from "vitest";
import { cutAtMeridian, joinedAtMeridian, withoutCuts } from "#shared/geometry/meridian.ts";
import type { Ring } from "#shared/geometry/ring.ts";
import { exteriorRing } from "#shared/territories/geojson.ts";
import { signOf } from "#shared/territories/import.ts";
import { rectangle, ringOf } from "../harness/rings.ts";
import { sized } from "../harness/tier.ts";

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
