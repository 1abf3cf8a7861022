/** A coded column the other way round: the rows of each value, so that a filter looks at the rows that it wants and no others. */
import type { Coded } from "#shared/company-index/columns.ts";
import type { RowFilter } from "#shared/company-index/row-filter.ts";

export interface Postings {
  /** Where the rows of each code begin; one more at the end. */
  readonly starts: Uint32Array;
  /** Row numbers, code by code. */
  readonly rows: Uint16Array;
}

export function postingsOf({ values, codes }: Coded<unknown>): Postings {
  const starts = new Uint32Array(values.length + 1);
  for (let row = 0; row < codes.length; row++) starts[(codes[row] ?? 0) + 1] = (starts[(codes[row] ?? 0) + 1] ?? 0) + 1;
  for (let code = 1; code < starts.length; code++) starts[code] = (starts[code] ?? 0) + (starts[code - 1] ?? 0);
  const rows = new Uint16Array(codes.length);
  const next = starts.slice();
  for (let row = 0; row < codes.length; row++) {
    const code = codes[row] ?? 0;
    const at = next[code] ?? 0;
    rows[at] = row;
    next[code] = at + 1;
  }
  return { starts, rows };
}

/** The rows whose value is wanted; undefined where every value is. The values are judged once, then a row costs one look-up. */
export function codedFilter<T>(
  { values, codes }: Coded<T>,
  postings: () => Postings,
  isWanted: (value: T) => boolean,
): RowFilter | undefined {
  const wanted = new Uint8Array(values.length);
  const chosen: number[] = [];
  for (let code = 0; code < values.length; code++) {
    const value = values[code];
    if (value === undefined || !isWanted(value)) continue;
    wanted[code] = 1;
    chosen.push(code);
  }
  if (chosen.length === values.length) return undefined;
  const { starts, rows } = postings();
  const stretches = chosen.map((code) => rows.subarray(starts[code], starts[code + 1]));
  const size = stretches.reduce((sum, { length }) => sum + length, 0);
  return { size, rows: () => joined(stretches, size), has: (row) => wanted[codes[row] ?? 0] === 1 };
}

function joined(stretches: readonly Uint16Array[], size: number): Uint16Array {
  const [only, second] = stretches;
  if (only !== undefined && second === undefined) return only;
  const rows = new Uint16Array(size);
  let at = 0;
  for (const stretch of stretches) {
    rows.set(stretch, at);
    at += stretch.length;
  }
  return rows;
}
