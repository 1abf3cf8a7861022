/**
 * A map's window as stretches of the geohash curve. The rows of a segment lie along the curve, so that those of a stretch are found by
 * halving: only they are compared with the window, not all rows of a segment that its edge crosses.
 */
import ngeohash from "ngeohash";
import type { RowFilter } from "#shared/company-index/row-filter.ts";
import type { GeoColumns } from "#shared/company-index/segment.ts";
import type { Box } from "#shared/company-index/zone.ts";

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

/** The rows of one segment that lie in the box. */
export class WindowFilter implements RowFilter {
  readonly inListOrder = false;
  readonly #geo: GeoColumns;
  readonly #box: Box;
  /** Of each stretch the first row in it, and the first one behind it. */
  readonly #spans: readonly (readonly [first: number, end: number])[];
  /** Rows in the stretches: some may lie outside of the box, near its edges. */
  readonly size: number;
  #compared = 0;

  constructor(geo: GeoColumns, box: Box, stretches: readonly Stretch[]) {
    this.#geo = geo;
    this.#box = box;
    this.#spans = spansOf(geo, stretches);
    this.size = this.#spans.reduce((sum, [first, end]) => sum + end - first, 0);
  }

  /** Rows whose coordinates were compared so far. */
  get compared(): number {
    return this.#compared;
  }

  rows(): Uint16Array {
    const rows = new Uint16Array(this.size);
    let size = 0;
    for (const [first, end] of this.#spans) {
      for (let row = first; row < end; row++) if (this.has(row)) rows[size++] = row;
    }
    return rows.subarray(0, size);
  }

  /** NaN fails each comparison: what has no coordinate is in no box. */
  has(row: number): boolean {
    this.#compared++;
    const [minLng, minLat, maxLng, maxLat] = this.#box;
    const lat = this.#geo.lat[row] ?? Number.NaN;
    if (!(lat >= minLat && lat <= maxLat)) return false;
    const lng = this.#geo.lng[row] ?? Number.NaN;
    return minLng > maxLng ? lng >= minLng || lng <= maxLng : lng >= minLng && lng <= maxLng;
  }
}

function spansOf({ lat, lng }: GeoColumns, stretches: readonly Stretch[]): [number, number][] {
  const count = lat.length;
  const placeAt = (row: number): number => {
    const [y = Number.NaN, x = Number.NaN] = [lat[row], lng[row]];
    return Number.isNaN(y) || Number.isNaN(x) ? -1 : placeOf(y, x);
  };
  /** First row, from this one on, that does not lie before a place. */
  const rowAt = (place: number, from: number): number => {
    let [low, high] = [from, count];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (placeAt(middle) < place) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const spans: [number, number][] = [];
  const last = placeAt(count - 1);
  let next = placeAt(0);
  let row = 0;
  for (const { from, to } of stretches) {
    if (to <= next) continue;
    if (from > last) break;
    const first = from <= next ? row : rowAt(from, row);
    row = to > last ? count : rowAt(to, first);
    if (row > first) spans.push([first, row]);
    if (row === count) break;
    next = placeAt(row);
  }
  return spans;
}
