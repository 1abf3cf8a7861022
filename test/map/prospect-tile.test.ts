/** Tests tiles of prospects. An independent library decodes them, and a simple count of points gives the expected content. */
import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { IndexRow } from "#shared/company-index/record.ts";
import type { LoadedSegment } from "#shared/company-index/search/loaded-segment.ts";
import { findMatches } from "#shared/company-index/search/match.ts";
import { flushedVersions } from "#shared/company-index/versions.ts";
import { sortedByGeohash } from "#shared/company-index/write/order.ts";
import { gzipped } from "#shared/http/gzip.ts";
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

const rowsOf = (points: readonly Point[], idOf: (i: number) => number): IndexRow[] =>
  points.map(([lat, lng, statusId], i) => plainRow({ id: idOf(i), createdAt: i, updatedAt: i, statusId, lat, lng }));

const sortedSegment = (rows: readonly IndexRow[]): LoadedSegment =>
  segmentOf(sortedByGeohash(rows.map((row) => ({ row, notes: [] }))));

/** The first `flushed` points are in the stored index, and the others are unflushed. */
function tilesOf(
  points: readonly Point[],
  flushed: number,
  idOf = (i: number): number => i + 1,
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
    // A tile has 16 cells in each direction, so each cell is as large as a tile four zoom levels deeper. The expected clusters group the
    // points by these deeper tiles.
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

/** The fraction of `(i + 1) * step` spreads the points and ids evenly and without a repeating pattern. */
function scatteredTile(firstId: number, range: number): Uint8Array {
  const spread = (i: number, step: number): number => ((i + 1) * step) % 1;
  // The square makes the first statuses more frequent.
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
