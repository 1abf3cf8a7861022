/**
 * A map's window as stretches of the geohash curve. The rows of a segment lie along the curve, so that those of a stretch are found by
 * halving: only they are compared with the window, not all rows of a segment that its edge crosses.
 */
import ngeohash from "ngeohash";
import type { Box } from "#shared/company-index/criteria.ts";

export const GEOHASH_BITS = 52;

/** Places along the curve from `from` up to, but not including, `to`. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** A geohash cell: the first bits of the places in it, how many, and its edges. */
interface Cell {
  readonly place: number;
  readonly bits: number;
  readonly box: Box;
}

const EARTH: Cell = { place: 0, bits: 0, box: [-180, -90, 180, 90] };

/** Cells across the window's edge, at most. What they hold beyond it is then a sixth of what the window holds, or less. */
const EDGE_CELLS = 192;

/** In the order of the curve; together they cover the box, and little else. Edges are inside; west may lie east of east. */
export function stretchesOf(box: Box): Stretch[] {
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
  return joined([...inside, ...edge].map(stretchOf).sort((a, b) => a.from - b.from));
}

function halves({ place, bits, box: [west, south, east, north] }: Cell): [Cell, Cell] {
  const [low, high] = [
    { place: place * 2, bits: bits + 1 },
    { place: place * 2 + 1, bits: bits + 1 },
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

function stretchOf({ place, bits }: Cell): Stretch {
  const places = 2 ** (GEOHASH_BITS - bits);
  return { from: place * places, to: (place + 1) * places };
}

/** Neighbours become one. */
function joined(stretches: readonly Stretch[]): Stretch[] {
  const long: Stretch[] = [];
  for (const { from, to } of stretches) {
    const last = long.at(-1);
    if (last?.to === from) long[long.length - 1] = { from: last.from, to };
    else long.push({ from, to });
  }
  return long;
}

/** Place along the curve; what is not on the map comes first. */
export const placeOf = (lat: number | null, lng: number | null): number =>
  lat === null || lng === null ? -1 : ngeohash.encode_int(lat, lng, GEOHASH_BITS);
