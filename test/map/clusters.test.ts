/** Tests that clusters have the cells and counts of a simple grouping of the points, and that moving the map changes none in view. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { IndexRow } from "#shared/company-index/record.ts";
import { cellAt, latAt, lngAt, mercatorX, mercatorY } from "#shared/geometry/mercator.ts";
import { View } from "#shared/map/cells.ts";
import { clustersOf } from "#shared/map/clusters.ts";
import { plainRow } from "../company-index/plain-rows.ts";

const names = { statuses: new Map() };
const rowsOf = (points: readonly (readonly [number | null, number | null, number | null])[]): IndexRow[] =>
  points.map(([lat, lng, statusId], i) => plainRow({ id: i + 1, createdAt: i, updatedAt: i, statusId, lat, lng }));
const lat = fc.oneof(fc.double({ min: -90, max: 90, noNaN: true }), fc.constantFrom(-90, 0, 90, 85.06, null));
const lng = fc.oneof(fc.double({ min: -180, max: 180, noNaN: true }), fc.constantFrom(-180, 0, 180));
const points = fc.array(fc.tuple(lat, lng, fc.constantFrom(null, 1, 2)), { maxLength: 60 });
const degrees = (max: number) => fc.integer({ min: -max, max });
const box = fc
  .tuple(degrees(180), degrees(90), degrees(180), degrees(90))
  .map(([west, a, east, b]): [number, number, number, number] => [west, Math.min(a, b), east, Math.max(a, b)]);

test("the items contain each prospect in the box exactly once, and no more than 2 000 cells are shown", () => {
  fc.assert(
    fc.property(points, box, fc.integer({ min: 0, max: 22 }), (given, bbox, zoom) => {
      const unflushed = rowsOf(given);
      const view = View.ofBox(bbox, zoom);
      expect(view.columns * view.rows).toBeLessThanOrEqual(2_000);
      const { items, total, unmapped } = clustersOf({ segments: [], unflushed }, view, names);
      expect(items.reduce((sum, { count }) => sum + count, 0)).toBe(total);
      expect(unmapped).toBe(unflushed.filter((row) => row.lat === null).length);
      for (const { count, byStatus = [{ statusId: null, count }] } of items) {
        expect(byStatus.reduce((sum, status) => sum + status.count, 0)).toBe(count);
      }
      const [west, south, east, north] = bbox;
      for (const row of unflushed) {
        if (row.lat === null || row.lng === null || row.lat < south || row.lat > north) continue;
        const isInside = west <= east ? row.lng >= west && row.lng <= east : row.lng >= west || row.lng <= east;
        if (isInside) expect(view.cellOf(row.lat, row.lng)).toBeGreaterThanOrEqual(0);
      }
      // The expected clusters: one for each cell of the grid that contains more than one point.
      const mapped = unflushed.flatMap((row) =>
        row.lat === null || row.lng === null ? [] : [{ lat: row.lat, lng: row.lng }],
      );
      const shown = mapped.filter((point) => view.cellOf(point.lat, point.lng) >= 0);
      const groups = Map.groupBy(
        shown,
        (point) =>
          `${Math.log2(view.cells)}/${cellAt(mercatorX(point.lng), view.cells)}/${cellAt(mercatorY(point.lat), view.cells)}`,
      );
      const several = [...groups].filter(([, group]) => group.length > 1);
      expect(new Map(items.flatMap(({ key, count }) => (key === undefined ? [] : [[key, count]])))).toEqual(
        new Map(several.map(([key, group]) => [key, group.length])),
      );
    }),
    { numRuns: 300 },
  );
});

test("moving the map changes no cluster that stays in view", () => {
  const spread = fc.array(
    fc.tuple(
      fc.double({ min: 39, max: 41, noNaN: true }),
      fc.double({ min: -106, max: -104, noNaN: true }),
      fc.constant(null),
    ),
    { minLength: 50, maxLength: 200 },
  );
  const moves = fc.double({ min: -0.4, max: 0.4, noNaN: true });
  fc.assert(
    fc.property(spread, moves, fc.integer({ min: 5, max: 11 }), (given, move, zoom) => {
      const unflushed = rowsOf(given);
      const at = (lngs: number) => {
        const view = View.ofBox([-105.5 + lngs, 39.5, -104.5 + lngs, 40.5], zoom);
        const { items } = clustersOf({ segments: [], unflushed }, view, names);
        return { cells: view.cells, items: new Map(items.map((item) => [item.key ?? `pin ${item.id}`, item])) };
      };
      const [before, after] = [at(0), at(move)];
      expect(after.cells).toBe(before.cells);
      for (const [key, item] of after.items) if (before.items.has(key)) expect(item).toEqual(before.items.get(key));
      // A cluster of the first view whose place is inside the second view must be in the second view too.
      for (const [key, item] of before.items) {
        if (item.lng > -105.5 + move && item.lng < -104.5 + move) expect(after.items.has(key)).toBe(true);
      }
    }),
    { numRuns: 100 },
  );
});

test("the cells have the same size wherever a window of whole pixels shows the map, although its degrees are rounded", () => {
  const share = fc.double({ min: 0.2, max: 0.6, noNaN: true });
  const start = fc.tuple(share, share);
  // A cell is 32 pixels wide, and a view may have 2 000 cells. If it has more, its cells are twice as large (`factor` 2). The view counts a
  // column and a row more for partial cells, and another column and row because the degrees are rounded. The first two windows (42 x 45 and
  // 41 x 46 cells) therefore count as 44 x 47 and 43 x 48 cells, which are too many. Without the addition for rounding, they would be so
  // close to 2 000 that the rounding of their degrees would decide. The third window (41 x 44) counts as 43 x 46 cells, which are allowed.
  const windows = fc.constantFrom(
    { width: 1344, height: 1440, factor: 2 },
    { width: 1312, height: 1472, factor: 2 },
    { width: 1312, height: 1408, factor: 1 },
    { width: 320, height: 480, factor: 1 },
  );
  fc.assert(
    fc.property(fc.integer({ min: 4, max: 18 }), windows, start, start, (zoom, { width, height, factor }, a, b) => {
      const world = 256 * 2 ** zoom;
      const rounded = (degrees: number): number => Math.round(degrees * 1e7) / 1e7;
      const sizes = [a, b].map(([x, y]) => {
        const [west, east] = [lngAt(x), lngAt(x + width / world)].map(rounded);
        const [south, north] = [latAt(y + height / world), latAt(y)].map(rounded);
        return View.ofBox([west ?? 0, south ?? 0, east ?? 0, north ?? 0], zoom).cells;
      });
      const cells = world / 32 / factor;
      expect(sizes).toEqual([cells, cells]);
    }),
    { numRuns: 500 },
  );
});
