/** The filters for the rows of one segment. */
import { doubleAt, uint16At, uint32At } from "#shared/at.ts";
import { type Area, type Box, insideBox } from "#shared/company-index/criteria.ts";
import type { Coded } from "#shared/company-index/encoding.ts";
import { type GeohashRange, geohashAt } from "#shared/company-index/geohash.ts";
import { groupedBy } from "#shared/company-index/search/grouped.ts";
import type { GeoColumns } from "#shared/company-index/segment.ts";

export interface RowFilter {
  /** Maximum number of rows that can pass, including outdated rows. */
  readonly size: number;
  readonly inListOrder: boolean;
  /** The result has no duplicates. Callers must not change the array. */
  rows(): Uint16Array;
  has(row: number): boolean;
}

export const noRows: RowFilter = { size: 0, inListOrder: true, rows: () => new Uint16Array(), has: () => false };

let numbers = new Uint16Array();

/** Returns the row numbers from 0 up to `count` - 1. Segments share the array, so callers must not change it. */
export function allRows(count: number): Uint16Array {
  if (numbers.length < count) numbers = Uint16Array.from({ length: count }, (_, row) => row);
  return numbers.subarray(0, count);
}

export function keepRows(rows: Uint16Array, isKept: (row: number) => boolean): Uint16Array {
  const kept = new Uint16Array(rows.length);
  let size = 0;
  for (const row of rows) if (isKept(row)) kept[size++] = row;
  return kept.subarray(0, size);
}

/** A `RowSet` of at most this many rows has no `#marks`, because it can search such a short list fast. This saves memory for rare words. */
const FEW = 8;

export class RowSet implements RowFilter {
  readonly inListOrder = false;
  readonly #count: number;
  readonly #rows: number[] = [];
  /** 1 for each row of the set. Undefined while the set has at most FEW rows. */
  #marks: Uint8Array | undefined;

  constructor(count: number) {
    this.#count = count;
  }

  get size(): number {
    return this.#rows.length;
  }

  add(row: number): void {
    if (this.has(row)) return;
    this.#rows.push(row);
    if (this.#marks !== undefined) this.#marks[row] = 1;
    else if (this.#rows.length > FEW) this.#marks = this.#marked();
  }

  #marked(): Uint8Array {
    const marks = new Uint8Array(this.#count);
    for (const row of this.#rows) marks[row] = 1;
    return marks;
  }

  rows(): Uint16Array {
    return new Uint16Array(this.#rows);
  }

  has(row: number): boolean {
    return this.#marks === undefined ? this.#rows.includes(row) : this.#marks[row] === 1;
  }
}

/** Returns true if the bit of the row is set in `bits`, which `Area.rowsInside` has returned. */
export const isMarked = (bits: Uint32Array, row: number): boolean =>
  ((uint32At(bits, row >>> 5) >>> (row & 31)) & 1) === 1;

/** A value that a filter accepts. Null means that the prospect has no value, for example no assignee. */
export type Wanted = number | string | null;

/** The row numbers of each value of a column. A code is the position of a value in the column's `values`. */
export interface Postings {
  /** The codes of each wanted value. A code of the tags column stands for a list of tags, so a tag may have several codes. */
  readonly codes: ReadonlyMap<Wanted, readonly number[]>;
  /** The position of the first row of each code in `rows`, and the end of the last code. */
  readonly starts: Uint32Array;
  /** The rows, grouped by code. If `inListOrder` is true, the newest rows are first in each group. */
  readonly rows: Uint16Array;
  readonly inListOrder: boolean;
}

/** A list of tags matches a filter if it contains a wanted tag. */
export type Value = Wanted | readonly number[];

/** `order` has all row numbers in list order. Undefined before `sortForLists`; each group then keeps the order of the segment. */
export function postingsOf({ values, codes }: Coded<Value>, order: Uint16Array | undefined): Postings {
  const rows = new Uint32Array(order ?? allRows(codes.length));
  const { starts, items } = groupedBy(rows, values.length, (i) => uint16At(codes, uint32At(rows, i)));
  return { codes: codesOf(values), starts, rows: new Uint16Array(items), inListOrder: order !== undefined };
}

function codesOf(values: readonly Value[]): Map<Wanted, number[]> {
  const codes = new Map<Wanted, number[]>();
  for (const [code, value] of values.entries()) {
    for (const wanted of isList(value) ? value : [value]) {
      const known = codes.get(wanted);
      if (known === undefined) codes.set(wanted, [code]);
      else known.push(code);
    }
  }
  return codes;
}

const isList = (value: Value): value is readonly number[] => typeof value === "object" && value !== null;

export function codedFilter(
  { values, codes }: Coded<Value>,
  postings: Postings,
  wanted: ReadonlySet<Wanted>,
): RowFilter | undefined {
  const chosen = chosenCodes(postings.codes, wanted);
  if (chosen.length === values.length) return undefined;
  const { starts, rows, inListOrder } = postings;
  const lists = chosen.map((code) => rows.subarray(starts[code], starts[code + 1]));
  const isChosen = new Set(chosen);
  return {
    size: lists.reduce((sum, { length }) => sum + length, 0),
    inListOrder: inListOrder && chosen.length < 2,
    rows: () => joined(lists),
    has: (row) => isChosen.has(uint16At(codes, row)),
  };
}

function chosenCodes(codes: Postings["codes"], wanted: ReadonlySet<Wanted>): readonly number[] {
  const found: (readonly number[])[] = [];
  if (wanted.size <= codes.size) for (const one of wanted) found.push(codes.get(one) ?? []);
  else for (const [one, some] of codes) if (wanted.has(one)) found.push(some);
  const [first = [], ...more] = found;
  return more.length === 0 ? first : [...new Set(found.flat())];
}

function joined(lists: readonly Uint16Array[]): Uint16Array {
  const [only, second] = lists;
  if (only !== undefined && second === undefined) return only;
  const rows = new Uint16Array(lists.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const list of lists) {
    rows.set(list, at);
    at += list.length;
  }
  return rows;
}

export class BboxFilter implements RowFilter {
  readonly inListOrder = false;
  readonly #geo: GeoColumns;
  readonly #box: Box;
  readonly #spans: readonly Span[];
  /** Number of rows in the geohash ranges, which cover a little more than the box. */
  readonly size: number;
  #compared = 0;

  constructor(geo: GeoColumns, box: Box, ranges: readonly GeohashRange[]) {
    this.#geo = geo;
    this.#box = box;
    this.#spans = spansOf(geo, ranges);
    this.size = this.#spans.reduce((sum, [first, end]) => sum + end - first, 0);
  }

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

  has(row: number): boolean {
    this.#compared++;
    return insideBox(this.#box, doubleAt(this.#geo.lat, row), doubleAt(this.#geo.lng, row));
  }
}

export class AreaFilter implements RowFilter {
  readonly inListOrder = false;
  readonly size: number;
  readonly has: (row: number) => boolean;

  constructor(geo: GeoColumns, area: Area) {
    this.size = geo.lat.length;
    let inside: Uint32Array | undefined;
    this.has = (row) => {
      if (area.rowsInside === undefined) return area.contains(doubleAt(geo.lat, row), doubleAt(geo.lng, row));
      inside ??= area.rowsInside(geo);
      return isMarked(inside, row);
    };
  }

  rows(): Uint16Array {
    return keepRows(allRows(this.size), this.has);
  }
}

/** The rows of a geohash range, from `first` up to the row before `end`. */
type Span = readonly [first: number, end: number];

function spansOf({ lat, lng }: GeoColumns, ranges: readonly GeohashRange[]): Span[] {
  const count = lat.length;
  const geohashAtRow = (row: number): number => {
    const [y, x] = [doubleAt(lat, row), doubleAt(lng, row)];
    return Number.isNaN(y) || Number.isNaN(x) ? -1 : geohashAt(y, x);
  };
  /** Returns the first row at or after the row `from` whose geohash is at least `geohash`. */
  const rowAt = (geohash: number, from: number): number => {
    let [low, high] = [from, count];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (geohashAtRow(middle) < geohash) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const spans: Span[] = [];
  const last = geohashAtRow(count - 1);
  let next = geohashAtRow(0);
  let row = 0;
  for (const { from, to } of ranges) {
    if (to <= next) continue;
    if (from > last) break;
    const first = from <= next ? row : rowAt(from, row);
    row = to > last ? count : rowAt(to, first);
    if (row > first) spans.push([first, row]);
    if (row === count) break;
    next = geohashAtRow(row);
  }
  return spans;
}
