/** Tests tiles and clusters of prospects against a simple count of the points. An independent library decodes the tiles. */
import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { IndexRow } from "#shared/company-index/record.ts";
import type { LoadedSegment } from "#shared/company-index/search/loaded-segment.ts";
import { findMatches } from "#shared/company-index/search/match.ts";
import { flushedVersions } from "#shared/company-index/versions.ts";
import { sortedByGeohash } from "#shared/company-index/write/order.ts";
import { cellAt, latAt, lngAt, mercatorX, mercatorY } from "#shared/geometry/mercator.ts";
import { gzipped } from "#shared/http/gzip.ts";
import { View } from "#shared/map/cells.ts";
import { clustersOf } from "#shared/map/clusters.ts";
import { TILE_GZIP_LEVEL, TILE_PINS_MAX, tileOf } from "#shared/map/prospect-tile.ts";
import { boxAround, type Tile } from "#shared/map/tile.ts";
import { plainRow, segmentOf } from "../company-index/plain-rows.ts";
import { decodedTile } from "../harness/decoded-tile.ts";
import { sized } from "../harness/tier.ts";

type Point = readonly [lat: number | null, lng: number | null, statusId: number | null];

const statuses = new Map([
  [1, { value: "New", color: "#3B82F6" }],
  [2, { value: "Sold", color: "#10B981" }],
  [3, { value: "Not Home", color: "#F59E0B" }],
  [4, { value: "Go Back", color: "#8B5CF6" }],
  [5, { value: "Interested", color: "#22C55E" }],
  [6, { value: "Appointment Set", color: "#06B6D4" }],
  [7, { value: "Not Interested", color: "#EF4444" }],
  [8, { value: "Do Not Knock", color: "#111827" }],
]);

const rowsOf = (points: readonly Point[], idOf = (i: number): number => i + 1): IndexRow[] =>
  points.map(([lat, lng, statusId], i) => plainRow({ id: idOf(i), createdAt: i, updatedAt: i, statusId, lat, lng }));

const sortedSegment = (rows: readonly IndexRow[]): LoadedSegment =>
  segmentOf(sortedByGeohash(rows.map((row) => ({ row, notes: [] }))));

/** Returns a function that makes tiles. The first `flushed` points are in the stored index, and the others are unflushed. */
function tilesOf(
  points: readonly Point[],
  flushed: number,
  idOf?: (i: number) => number,
): (tile: Tile) => Uint8Array | undefined {
  const rows = rowsOf(points, idOf);
  const stored = rows.slice(0, flushed);
  const segments = stored.length === 0 ? [] : [{ segment: sortedSegment(stored), age: 0, dead: undefined }];
  const prospects = new Map(rows.slice(flushed).map((row) => [row.id, row]));
  const { noteVersions } = flushedVersions([]);
  const view = { segments, noteVersions, looseNotes: [], delta: { prospects, notes: new Map() } };
  return (tile) => tileOf(findMatches(view, { box: boxAround(tile), words: [] }), tile, { statuses });
}

/** Returns the tile of a point by the formula of the OpenStreetMap wiki. Points north or south of the map belong to the outermost tiles. */
function tileAt(lat: number, lng: number, zoom: number): Tile {
  const tiles = 2 ** zoom;
  const angle = (lat * Math.PI) / 180;
  const [x, y] = [((lng + 180) / 360) * tiles, ((1 - Math.asinh(Math.tan(angle)) / Math.PI) / 2) * tiles];
  const within = (position: number): number => Math.min(tiles - 1, Math.max(0, Math.floor(position)));
  return { z: zoom, x: within(x), y: within(y) };
}

const nameOf = ({ z, x, y }: Tile): string => `${z}/${x}/${y}`;
const neighbours = ({ z, x, y }: Tile): Tile[] =>
  [-1, 0, 1]
    .flatMap((dx) => [-1, 0, 1].map((dy) => ({ z, x: x + dx, y: y + dy })))
    .filter((tile) => tile.x >= 0 && tile.y >= 0 && tile.x < 2 ** z && tile.y < 2 ** z);

/** Includes longitudes on the edges of tiles. They are exact in binary, so the expected tile is not subject to rounding. */
const lng = fc.oneof(
  fc.double({ min: -180, max: 180, noNaN: true }),
  fc.constantFrom(-180, 0, 180, -90, 45, 11.25),
  fc.double({ min: -105.01, max: -105, noNaN: true }),
);
const lat = fc.oneof(
  fc.double({ min: -90, max: 90, noNaN: true }),
  fc.constantFrom(-90, 0, 90, 85.06, -85.06, null),
  fc.double({ min: 39.7, max: 39.71, noNaN: true }),
);
const points = fc.array(fc.tuple(lat, lng, fc.constantFrom(null, 1, 2)), { minLength: 1, maxLength: 40 });
const zooms = fc.integer({ min: 0, max: 22 });

describe("pins", () => {
  test("each point is in exactly one tile of a zoom, at its place, with its status", { tags: "sized" }, () => {
    fc.assert(
      fc.property(points, zooms, fc.nat(40), (given, zoom, flushed) => {
        const make = tilesOf(given, Math.min(flushed, given.length));
        const mapped = given.flatMap(([y, x, status], i) =>
          y === null || x === null ? [] : [{ id: i + 1, y, x, status }],
        );
        const homes = mapped.map((point) => tileAt(point.y, point.x, zoom));
        const all = new Map(homes.flatMap(neighbours).map((tile) => [nameOf(tile), tile]));
        const seen = new Map<number, Tile>();
        for (const tile of all.values()) {
          const bytes = make(tile);
          if (bytes === undefined) continue;
          const { pins = [], clusters, meta } = decodedTile(bytes);
          expect(clusters).toBeUndefined();
          expect(meta?.map(({ properties }) => properties)).toEqual([{ total: pins.length }]);
          for (const { id = 0, properties, lines } of pins) {
            expect(seen.has(id), `point ${id} is in two tiles`).toBe(false);
            seen.set(id, tile);
            const point = mapped.find((one) => one.id === id);
            const status = statuses.get(point?.status ?? 0);
            const shown = status === undefined ? { color: "#9CA3AF" } : { status: status.value, color: status.color };
            expect(properties).toEqual({ id, ...shown });
            const [[[x, y] = [-1, -1]] = []] = lines;
            expect(x >= 0 && x < 4_096 && y >= 0 && y < 4_096).toBe(true);
            // A tile has 4 096 units in each direction, so each unit is as large as a tile 12 zoom levels deeper. The deeper tile of the
            // point therefore gives the expected unit of the pin. Because of rounding, the pin may also be at a unit next to it.
            const deep = tileAt(point?.y ?? 0, point?.x ?? 0, zoom + 12);
            expect(Math.abs(tile.x * 4_096 + x - deep.x)).toBeLessThanOrEqual(1);
            expect(Math.abs(tile.y * 4_096 + y - deep.y)).toBeLessThanOrEqual(1);
          }
        }
        expect([...seen.keys()].sort((a, b) => a - b)).toEqual(mapped.map(({ id }) => id));
      }),
      { numRuns: sized({ short: 50, wide: 150 }) },
    );
  });

  test("a point on an edge is in the tile to the east and south of the edge", () => {
    const make = tilesOf([[0, 0, null]], 1);
    for (let zoom = 1; zoom <= 22; zoom++) {
      const half = 2 ** (zoom - 1);
      const found = neighbours({ z: zoom, x: half, y: half }).filter((tile) => make(tile) !== undefined);
      expect(found).toEqual([{ z: zoom, x: half, y: half }]);
    }
  });
});

describe("a tile with more than 5 000 points", () => {
  // `dense` is a fixed pattern of exactly 5 000 points that are close together. `crowd` has one more point, which is far from all others.
  const dense: Point[] = Array.from({ length: TILE_PINS_MAX }, (_, i) => [
    39.7 + ((i * 7) % 997) / 5_000,
    -105 + ((i * 13) % 1_009) / 5_000,
    [null, 1, 2][i % 3] ?? null,
  ]);
  const crowd: Point[] = [...dense, [40.5, -104.1, 2]];

  test("has clusters that add up to the total, and pins of points alone in their cell", () => {
    const tile = tileAt(39.7, -105, 7);
    const count = crowd.filter(([y, x]) => nameOf(tileAt(y ?? 0, x ?? 0, 7)) === nameOf(tile)).length;
    expect(count).toBe(TILE_PINS_MAX + 1);
    const bytes = tilesOf(crowd, 4_000)(tile) ?? new Uint8Array();
    const { pins = [], clusters = [], meta = [] } = decodedTile(bytes);
    expect(meta.map(({ properties }) => properties)).toEqual([{ total: count }]);
    expect(pins.map(({ id, properties }) => ({ id, properties }))).toEqual([
      { id: crowd.length, properties: { id: crowd.length, status: "Sold", color: "#10B981" } },
    ]);
    expect(clusters.reduce((sum, { properties }) => sum + Number(properties.count), pins.length)).toBe(count);
    // A tile has 16 cells in each direction. Each cell is as large as a tile four zoom levels deeper.
    const groups = Map.groupBy(dense, ([y, x]) => {
      const cell = tileAt(y ?? 0, x ?? 0, 11);
      return nameOf(cell);
    });
    expect(new Map(clusters.map(({ properties }) => [properties.key, properties.count]))).toEqual(
      new Map([...groups].map(([key, group]) => [key, group.length])),
    );
    for (const { properties, lines } of clusters) {
      const group = groups.get(String(properties.key)) ?? [];
      const countOf = (status: number | null): number => group.filter(([, , id]) => id === status).length;
      const counts = { status_none: countOf(null), status_1: countOf(1), status_2: countOf(2) };
      const counted = Object.entries(properties).filter(([name]) => name.startsWith("status_"));
      expect(Object.fromEntries(counted)).toEqual(
        Object.fromEntries(Object.entries(counts).filter(([, number]) => number > 0)),
      );
      const most = Math.max(...Object.values(counts));
      const shown =
        properties.status === undefined
          ? counts.status_none
          : properties.status === "New"
            ? counts.status_1
            : counts.status_2;
      expect(shown).toBe(most);
      const [x, y] = lines[0]?.[0] ?? [-1, -1];
      const cell = String(properties.key).split("/").map(Number);
      expect([tile.x * 16 + Math.floor(x / 256), tile.y * 16 + Math.floor(y / 256)]).toEqual(cell.slice(1));
    }
  });

  test("of which some lie just outside shows pins if 5 000 remain", () => {
    // The search for points covers a little more than the tile. It also finds this point, which is on the western edge of the next tile.
    // The tile must neither show it nor count it.
    const tile = { z: 1, x: 0, y: 0 };
    const given: Point[] = [...dense, [10, 0, null]];
    const { pins = [], clusters } = decodedTile(tilesOf(given, 0)(tile) ?? new Uint8Array());
    expect([pins.length, clusters]).toEqual([TILE_PINS_MAX, undefined]);
  });
});

/** Makes a tile with evenly spread points and ids. The fractions of `(i + 1) * step` are spread without a repeating pattern. */
function scatteredTile(firstId: number, range: number): Uint8Array {
  const spread = (i: number, step: number): number => ((i + 1) * step) % 1;
  // The square makes low numbers more frequent, so the first statuses have more prospects.
  const statusOf = (i: number): number => 1 + Math.floor(statuses.size * spread(i, 0.430_16) ** 2);
  const scattered = Array.from(
    { length: TILE_PINS_MAX },
    (_, i): Point => [85 * spread(i, 0.754877), -180 * spread(i, 0.56984), statusOf(i)],
  );
  const idOf = (i: number): number => firstId + Math.floor(range * spread(i, 0.680_393_2));
  const tile = tilesOf(scattered, scattered.length, idOf)({ z: 1, x: 0, y: 0 }) ?? new Uint8Array();
  const ids = decodedTile(tile).pins?.map(({ id }) => id);
  expect(ids).toEqual(scattered.map((_, i) => idOf(i)).sort((a, b) => a - b));
  return tile;
}

test.for([
  { firstId: 1, range: 5_000, maximum: 60_000 },
  { firstId: 1, range: 100_000, maximum: 60_000 },
  { firstId: 1_000_000, range: 1_000_000, maximum: 60_000 },
  // The first two bytes of ids from 50 to 100 million have no pattern, so each pin needs about one byte more than in the cases above.
  { firstId: 50_000_000, range: 50_000_000, maximum: 64_000 },
])("5 000 pins with $range ids from $firstId on have at most $maximum bytes", async ({ firstId, range, maximum }) => {
  const tile = scatteredTile(firstId, range);
  expect((await buffer(gzipped([tile], TILE_GZIP_LEVEL))).length).toBeLessThanOrEqual(maximum);
});

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
      const { items, total, unmapped } = clustersOf({ segments: [], unflushed }, view, { statuses: new Map() });
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
        const { items } = clustersOf({ segments: [], unflushed }, view, { statuses: new Map() });
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
