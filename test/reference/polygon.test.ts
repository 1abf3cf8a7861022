/** Tests that packed polygons are unpacked exactly and need few bytes, and the cache of prepared polygons. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import { packPolygon, unpackPolygon } from "#shared/reference/polygon.ts";
import { areaOf } from "#shared/reference/territory-areas.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";

const db = faultyDynamoDb();

const degrees = (most: number) => ({ min: -most, max: most, noNaN: true });
const rounded = (most: number) =>
  fc
    .record({ value: fc.double(degrees(most)), decimals: fc.nat(13) })
    .map(({ value, decimals }) => Number(value.toFixed(decimals)));
const coordinate = (most: number) =>
  fc.oneof(fc.double(degrees(most)), rounded(most), fc.integer({ min: -most, max: most }));
const polygons = fc.array(fc.tuple(coordinate(180), coordinate(90)), { maxLength: 40 });
const sameDecimals = fc
  .nat(8)
  .chain((decimals) =>
    fc.array(
      fc
        .tuple(fc.double(degrees(180)), fc.double(degrees(90)))
        .map(([lng, lat]): [number, number] => [Number(lng.toFixed(decimals)), Number(lat.toFixed(decimals))]),
    ),
  );

test("a packed polygon returns any numbers exactly", () => {
  fc.assert(
    fc.property(fc.oneof(polygons, sameDecimals), (polygon) => {
      expect(JSON.stringify(unpackPolygon(packPolygon(polygon)))).toBe(JSON.stringify(polygon));
    }),
    { numRuns: 2_000 },
  );
});

test("a packed polygon is the same for equal polygons", () => {
  fc.assert(fc.property(polygons, (polygon) => Buffer.compare(packPolygon(polygon), packPolygon(polygon)) === 0));
});

test.each([
  [6, 3],
  [7, 4],
  [undefined, 13],
])("a packed polygon of %s decimals takes at most %d bytes a point", (decimals, bytes) => {
  const points = Array.from({ length: 5_000 }, (_, i): [number, number] => {
    const angle = (i / 5_000) * 2 * Math.PI;
    const noise = (Math.sin(i * 12.9898) * 43_758.5453) % 1e-4;
    const [lng, lat] = [-105 + 0.1 * Math.cos(angle) + noise, 39.7 + 0.1 * Math.sin(angle) - noise];
    return decimals === undefined ? [lng, lat] : [Number(lng.toFixed(decimals)), Number(lat.toFixed(decimals))];
  });
  expect(packPolygon(points).length / points.length).toBeLessThanOrEqual(bytes);
  expect(unpackPolygon(packPolygon(points))).toEqual(points);
});

const zigzag = (height: number) =>
  packPolygon(Array.from({ length: 8 }, (_, i): [number, number] => [i / 8, i % 2 === 0 ? 0 : height]));

test("a polygon is prepared once, until it changes or the prepared polygons need too much memory", () => {
  const { table } = contextOn(db.direct, { now: () => 0 });
  const areaAt = (territoriesVersion: number, id: number, height: number, companyId = 1) =>
    areaOf({ table, companyId, head: { logId: "", territoriesVersion } }, { id, polygon: zigzag(height) });
  const first = areaAt(1, 1, 1);
  expect(areaAt(2, 1, 1)).toBe(first);
  expect(areaAt(2, 1, 1, 2)).not.toBe(first);
  const changed = areaAt(3, 1, 2);
  expect([first.contains(1.5, 0.7), changed.contains(1.5, 0.63)]).toEqual([false, true]);
  for (let id = 2; id < 600; id++) areaAt(3, id, 1);
  expect(areaAt(3, 1, 2)).not.toBe(changed);
  expect(areaAt(3, 599, 1)).toBe(areaAt(3, 599, 1));
});
