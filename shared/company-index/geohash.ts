/**
 * A map's window as stretches of the geohash curve. The rows of a segment lie along the curve, so that those of a stretch are found by
 * halving: only they are compared with the window, not all rows of a segment that its edge crosses.
 */
import ngeohash from "ngeohash";
import type { Box } from "#shared/company-index/criteria.ts";

export const GEOHASH_BITS = 52;

/** Places along the curve from `from` up to, but not including, `to`. */
export interface GeohashRange {
  readonly from: number;
  readonly to: number;
}

/** A geohash cell: the first bits of the places in it, how many, and its edges. */
interface Cell {
  readonly geohash: number;
  readonly bits: number;
  readonly box: Box;
}

const EARTH: Cell = { geohash: 0, bits: 0, box: [-180, -90, 180, 90] };

/** Cells across the window's edge, at most. What they hold beyond it is then a sixth of what the window holds, or less. */
const EDGE_CELLS = 192;

/** In the order of the curve; together they cover the box, and little else. Edges are inside; west may lie east of east. */
export function geohashRanges(box: Box): GeohashRange[] {
  const inside: Cell[] = [];
  let edge = [EARTH];
  while (edge.length > 0 && edge.length * 2 <= EDGE_CELLS && (edge[0]?.bits ?? 0) < GEOHASH_BITS) {
    const next: Cell[] = [];
    for (const cell of edge.flatMap(halves)) {
      if (isWithin(cell.box, box)) inside.push(cell);
      else if (meets(cell.box, box)) next.push(cell);
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

function meets([west, south, east, north]: Box, [minLng, minLat, maxLng, maxLat]: Box): boolean {
  if (south > maxLat || north < minLat) return false;
  return minLng <= maxLng ? west <= maxLng && east >= minLng : east >= minLng || west <= maxLng;
}

function isWithin([west, south, east, north]: Box, [minLng, minLat, maxLng, maxLat]: Box): boolean {
  if (south < minLat || north > maxLat) return false;
  return minLng <= maxLng ? west >= minLng && east <= maxLng : west >= minLng || east <= maxLng;
}

function rangeOf({ geohash, bits }: Cell): GeohashRange {
  const geohashes = 2 ** (GEOHASH_BITS - bits);
  return { from: geohash * geohashes, to: (geohash + 1) * geohashes };
}

/** Neighbours become one. */
function joined(ranges: readonly GeohashRange[]): GeohashRange[] {
  const long: GeohashRange[] = [];
  for (const { from, to } of ranges) {
    const last = long.at(-1);
    if (last?.to === from) long[long.length - 1] = { from: last.from, to };
    else long.push({ from, to });
  }
  return long;
}

/** Place along the curve; what is not on the map comes first. */
export const geohashAt = (lat: number | null, lng: number | null): number =>
  lat === null || lng === null ? -1 : ngeohash.encode_int(lat, lng, GEOHASH_BITS);
