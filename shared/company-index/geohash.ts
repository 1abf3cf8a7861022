/** Geohashes as integers of 52 bits, and the ranges of geohashes that cover an area. Segments are sorted by geohash. */
import ngeohash from "ngeohash";
import { at } from "#shared/at.ts";
import { type Box, meetsBox, withinBox } from "#shared/company-index/criteria.ts";

export const GEOHASH_BITS = 52;

/** All points whose geohashes have the same first `bits` bits. `geohash` is these bits as a number. */
interface Cell {
  readonly geohash: number;
  readonly bits: number;
  /** A cell never crosses the 180th meridian. */
  readonly box: Box;
}

const EARTH: Cell = { geohash: 0, bits: 0, box: [-180, -90, 180, 90] };

/** A range of geohashes. `from` is included, and `to` is not. */
export interface GeohashRange {
  readonly from: number;
  readonly to: number;
}

/** Maximum number of cells that the outline of a box crosses. The cells then cover at most a sixth more than the area of the box. */
const EDGE_CELLS = 192;

/** Returns sorted geohash ranges that cover the box. The edges are part of the box, and the box may cross the 180th meridian. */
export function geohashRanges(box: Box): GeohashRange[] {
  const inside: Cell[] = [];
  let edge = [EARTH];
  while (edge.length > 0 && edge.length * 2 <= EDGE_CELLS && at(edge, 0).bits < GEOHASH_BITS) {
    const next: Cell[] = [];
    for (const half of edge.flatMap(halves)) {
      if (withinBox(half, box)) inside.push(half);
      else if (meetsBox(half, box)) next.push(half);
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
  for (const range of ranges) {
    const last = long.at(-1);
    if (last?.to === range.from) long[long.length - 1] = { ...last, to: range.to };
    else long.push(range);
  }
  return long;
}

/** Returns the geohash of a point, or -1 without coordinates. Rows without coordinates therefore sort first. */
export const geohashAt = (lat: number | null, lng: number | null): number =>
  lat === null || lng === null ? -1 : ngeohash.encode_int(lat, lng, GEOHASH_BITS);
