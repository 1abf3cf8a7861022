/**
 * Geohashes as integers of 52 bits, and the ranges of geohashes that cover a bounding box. The rows of a segment (a stored part of the
 * search index) are sorted by geohash. A binary search therefore finds the rows of a range.
 */
import ngeohash from "ngeohash";
import { type Box, meetsBox, withinBox } from "#shared/company-index/criteria.ts";

export const GEOHASH_BITS = 52;

export interface GeohashRange {
  readonly from: number;
  readonly to: number;
}

/**
 * A cell on the map: all points whose geohashes have the same first `bits` bits. `geohash` is these bits as a number, and `box` contains
 * the edges of the cell.
 */
interface Cell {
  readonly geohash: number;
  readonly bits: number;
  readonly box: Box;
}

const EARTH: Cell = { geohash: 0, bits: 0, box: [-180, -90, 180, 90] };

/**
 * Maximum number of cells on the edge of a bounding box. More cells fit the box better, but lead to more ranges. With 192, the covered
 * area outside the box is at most a sixth of the box.
 */
const EDGE_CELLS = 192;

/**
 * Returns sorted ranges that cover the whole box and little area outside it. The edges belong to the box, and the box may cross the 180th
 * meridian.
 */
export function geohashRanges(box: Box): GeohashRange[] {
  const inside: Cell[] = [];
  let edge = [EARTH];
  while (edge.length > 0 && edge.length * 2 <= EDGE_CELLS && (edge[0]?.bits ?? 0) < GEOHASH_BITS) {
    const next: Cell[] = [];
    for (const cell of edge.flatMap(halves)) {
      if (withinBox(cell, box)) inside.push(cell);
      else if (meetsBox(cell, box)) next.push(cell);
    }
    edge = next;
  }
  return joined([...inside, ...edge].map(rangeOf).sort((a, b) => a.from - b.from));
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

function rangeOf({ geohash, bits }: Cell): GeohashRange {
  const geohashes = 2 ** (GEOHASH_BITS - bits);
  return { from: geohash * geohashes, to: (geohash + 1) * geohashes };
}

function joined(ranges: readonly GeohashRange[]): GeohashRange[] {
  const long: GeohashRange[] = [];
  for (const { from, to } of ranges) {
    const last = long.at(-1);
    if (last?.to === from) long[long.length - 1] = { from: last.from, to };
    else long.push({ from, to });
  }
  return long;
}

/** Returns the geohash of a point. Returns -1 for a row without coordinates, so that such rows are sorted first. */
export const geohashAt = (lat: number | null, lng: number | null): number =>
  lat === null || lng === null ? -1 : ngeohash.encode_int(lat, lng, GEOHASH_BITS);
