/** Geohashes as integers of 52 bits, and the ranges of geohashes that cover an area. Segments are sorted by geohash. */
import ngeohash from "ngeohash";
import { type AreaRange, type Box, meetsBox, withinBox } from "#shared/company-index/criteria.ts";

export const GEOHASH_BITS = 52;

/** All points whose geohashes have the same first `bits` bits. `geohash` is these bits as a number. */
interface Cell {
  readonly geohash: number;
  readonly bits: number;
  readonly box: CellBox;
}

const EARTH: Cell = { geohash: 0, bits: 0, box: [-180, -90, 180, 90] };

/** The edges of a geohash cell. A cell never crosses the 180th meridian. */
export type CellBox = readonly [west: number, south: number, east: number, north: number];

/** Maximum number of cells on the edge of a box. With 192 cells, the covered area outside is at most a sixth of the box. */
const EDGE_CELLS = 192;

/** Returns sorted ranges that cover the box. The edges are part of the box, and the box may cross the 180th meridian. */
export function geohashRanges(box: Box): AreaRange[] {
  const ranges = rangesOfArea({}, EDGE_CELLS, (cell, known) => {
    if (withinBox({ box: cell }, box)) return "inside";
    return meetsBox({ box: cell }, box) ? known : "outside";
  });
  return joined(ranges.map(({ from, to }) => ({ from, to, isInside: false })));
}

/**
 * Returns where a cell is, or an object if the edge of the area may cross it. Tests of both halves of the cell get this object as `known`.
 */
export type CellTest<Known extends object> = (cell: CellBox, known: Known) => "inside" | "outside" | Known;

/** Returns sorted ranges that cover an area, with at most `edgeCells` cells on its edge. */
export function rangesOfArea<Known extends object>(
  start: Known,
  edgeCells: number,
  test: CellTest<Known>,
): AreaRange[] {
  const inside: Cell[] = [];
  let edge = [{ cell: EARTH, known: start }];
  while (edge.length > 0 && edge.length * 2 <= edgeCells && (edge[0]?.cell.bits ?? 0) < GEOHASH_BITS) {
    const next: { cell: Cell; known: Known }[] = [];
    for (const { cell, known } of edge) {
      for (const half of halves(cell)) {
        const found = test(half.box, known);
        if (found === "inside") inside.push(half);
        else if (found !== "outside") next.push({ cell: half, known: found });
      }
    }
    edge = next;
  }
  const ranges = [
    ...inside.map((cell) => ({ ...rangeOf(cell), isInside: true })),
    ...edge.map(({ cell }) => ({ ...rangeOf(cell), isInside: false })),
  ];
  return joined(ranges.sort((a, b) => a.from - b.from));
}

function halves({ geohash, bits, box: [west, south, east, north] }: Cell): [Cell, Cell] {
  const [low, high] = [
    { geohash: geohash * 2, bits: bits + 1 },
    { geohash: geohash * 2 + 1, bits: bits + 1 },
  ];
  if (bits % 2 === 0) {
    const middle = (west + east) / 2;
    return [
      { ...low, box: [west, south, middle, north] },
      { ...high, box: [middle, south, east, north] },
    ];
  }
  const middle = (south + north) / 2;
  return [
    { ...low, box: [west, south, east, middle] },
    { ...high, box: [west, middle, east, north] },
  ];
}

function rangeOf({ geohash, bits }: Cell): Pick<AreaRange, "from" | "to"> {
  const geohashes = 2 ** (GEOHASH_BITS - bits);
  return { from: geohash * geohashes, to: (geohash + 1) * geohashes };
}

function joined(ranges: readonly AreaRange[]): AreaRange[] {
  const long: AreaRange[] = [];
  for (const range of ranges) {
    const last = long.at(-1);
    if (last?.to === range.from && last.isInside === range.isInside) long[long.length - 1] = { ...last, to: range.to };
    else long.push(range);
  }
  return long;
}

/** Returns the geohash of a point. Returns -1 for a row without coordinates, which sorts before all geohashes. */
export const geohashAt = (lat: number | null, lng: number | null): number =>
  lat === null || lng === null ? -1 : ngeohash.encode_int(lat, lng, GEOHASH_BITS);
