/** Tests the GeoJSON form of territories. Each polygon becomes one closed, counter-clockwise ring with the same area (RFC 7946). */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Polygon } from "#shared/reference/polygon.ts";
import { exteriorRing, featureOf } from "#shared/territories/geojson.ts";
import { ringOf } from "../harness/rings.ts";
import { sized } from "../harness/tier.ts";

/** Units in a degree. The coordinates of this test have seven decimals and are integers in these units, so areas are exact. */
const SCALE = 1e7;
const coordinate = (limit: number) =>
  fc.integer({ min: -limit * SCALE, max: limit * SCALE }).map((value) => value / SCALE);
const ring = fc.array(fc.tuple(coordinate(180), coordinate(90)), { minLength: 3, maxLength: 8 });
/** Small rings around one point, about as large as a neighbourhood of a town. */
const town = fc
  .tuple(
    fc.tuple(coordinate(179), coordinate(89)),
    fc.array(fc.tuple(coordinate(0.01), coordinate(0.01)), { minLength: 3, maxLength: 8 }),
  )
  .map(([[lng, lat], offsets]) =>
    offsets.map(([x, y]): [number, number] => [
      Math.round((lng + x) * SCALE) / SCALE,
      Math.round((lat + y) * SCALE) / SCALE,
    ]),
  );
const closing = fc.boolean();

/** Returns twice the area, in square units of the last decimal. It is positive if the ring is counter-clockwise. */
function exactArea(polygon: Polygon): bigint {
  const points = polygon.map((point) => point.map((value) => BigInt(Math.round(value * SCALE))));
  return points.reduce((sum, [x = 0n, y = 0n], i) => {
    const [nextX = 0n, nextY = 0n] = points[(i + 1) % points.length] ?? [];
    return sum + x * nextY - nextX * y;
  }, 0n);
}

const edges = (polygon: Polygon): string[] =>
  polygon
    .map((point, i) => [point, polygon[(i + 1) % polygon.length] ?? point])
    .filter(([a, b]) => JSON.stringify(a) !== JSON.stringify(b))
    .map((edge) =>
      edge
        .map((point) => JSON.stringify(point))
        .toSorted()
        .join(),
    )
    .toSorted();

test("each polygon becomes a closed, counter-clockwise ring with the same edges", { tags: "sized" }, () => {
  fc.assert(
    fc.property(fc.oneof(ring, town), closing, (open, isClosed) => {
      const polygon = isClosed ? [...open, open[0] ?? [0, 0]] : open;
      const before = JSON.stringify(polygon);
      const made = exteriorRing(polygon);
      expect(JSON.stringify(polygon)).toBe(before);
      expect(made.length).toBeGreaterThanOrEqual(4);
      expect(made.at(-1)).toEqual(made.at(0));
      expect(exactArea(made) >= 0n).toBe(true);
      expect(edges(made)).toEqual(edges(polygon));
    }),
    { numRuns: sized({ short: 300, wide: 3_000 }) },
  );
});

test.each([
  ["a clockwise triangle", "0 0, 0 1, 1 0", "0 0, 1 0, 0 1, 0 0"],
  ["a closed polygon of three points", "0 0, 1 1, 0 0", "0 0, 1 1, 0 0, 0 0"],
  ["one point three times", "5 5, 5 5, 5 5", "5 5, 5 5, 5 5, 5 5"],
  [
    "an area from one end of the map to the other",
    "-180 -90, -180 90, 180 90, 180 -90",
    "-180 -90, 180 -90, 180 90, -180 90, -180 -90",
  ],
])("%s becomes a valid ring", (_, polygon, expected) => {
  expect(exteriorRing(ringOf(polygon))).toEqual(ringOf(expected));
});

test("a territory without a polygon has no geometry, and a feature has all other fields", () => {
  const times = { createdAt: "2030-01-01T00:00:00.000Z", updatedAt: "2030-01-01T00:00:00.000Z" };
  const fields = { name: "T", totalProperties: 4, assignedToUserId: null, companyId: 3, ...times };
  expect(featureOf({ id: 7, polygon: [], ...fields })).toEqual({
    type: "Feature",
    id: 7,
    geometry: null,
    properties: fields,
  });
});
