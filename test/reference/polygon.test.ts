/** Tests that packed polygons are unpacked exactly and need few bytes. Polygons are the borders of territories. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { packPolygon, unpackPolygon } from "#shared/reference/polygon.ts";

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

describe("a packed polygon", () => {
  test("returns any numbers exactly", () => {
    fc.assert(
      fc.property(fc.oneof(polygons, sameDecimals), (polygon) => {
        expect(JSON.stringify(unpackPolygon(packPolygon(polygon)))).toBe(JSON.stringify(polygon));
      }),
      { numRuns: 2_000 },
    );
  });

  test("is the same for equal polygons", () => {
    fc.assert(fc.property(polygons, (polygon) => Buffer.compare(packPolygon(polygon), packPolygon(polygon)) === 0));
  });

  test.each([
    [6, 3],
    [7, 4],
    [undefined, 13],
  ])("of %s decimals takes at most %d bytes a point", (decimals, bytes) => {
    const points = Array.from({ length: 5_000 }, (_, i): [number, number] => {
      const angle = (i / 5_000) * 2 * Math.PI;
      const noise = (Math.sin(i * 12.9898) * 43_758.5453) % 1e-4;
      const [lng, lat] = [-105 + 0.1 * Math.cos(angle) + noise, 39.7 + 0.1 * Math.sin(angle) - noise];
      return decimals === undefined ? [lng, lat] : [Number(lng.toFixed(decimals)), Number(lat.toFixed(decimals))];
    });
    expect(packPolygon(points).length / points.length).toBeLessThanOrEqual(bytes);
    expect(unpackPolygon(packPolygon(points))).toEqual(points);
  });
});
