/** A coded column the other way round: the rows of each value, so that a filter looks at the rows that it wants and no others. */
import type { Coded } from "#shared/company-index/columns.ts";
import type { RowFilter } from "#shared/company-index/row-filter.ts";

/** What a filter asks for: an id, nobody, a city. */
export type Wanted = number | string | null;

export interface Postings {
  /** Which codes stand for what a filter asks for: several tags together are one value, and each of them is asked for. */
  readonly codes: ReadonlyMap<Wanted, readonly number[]>;
  /** Where the rows of each code begin; one more at the end. */
  readonly starts: Uint32Array;
  /** Row numbers, code by code; those of one code in the order that the rows were given in. */
  readonly rows: Uint16Array;
  readonly inListOrder: boolean;
}

/** A value that filters ask for by one thing, or by several. */
export type Value = Wanted | readonly number[];

/** `order`: all rows as a list shows them; undefined where they have not been put in that order. */
export function postingsOf({ values, codes }: Coded<Value>, order: Uint16Array | undefined): Postings {
  const starts = new Uint32Array(values.length + 1);
  for (let row = 0; row < codes.length; row++) starts[(codes[row] ?? 0) + 1] = (starts[(codes[row] ?? 0) + 1] ?? 0) + 1;
  for (let code = 1; code < starts.length; code++) starts[code] = (starts[code] ?? 0) + (starts[code - 1] ?? 0);
  const rows = new Uint16Array(codes.length);
  const next = starts.slice();
  for (let i = 0; i < codes.length; i++) {
    const row = order === undefined ? i : (order[i] ?? 0);
    const code = codes[row] ?? 0;
    const at = next[code] ?? 0;
    rows[at] = row;
    next[code] = at + 1;
  }
  return { codes: codesOf(values), starts, rows, inListOrder: order !== undefined };
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

/** The rows with something that is wanted; undefined where every row has. */
export function codedFilter(
  { values, codes }: Coded<Value>,
  postings: Postings,
  wanted: ReadonlySet<Wanted>,
): RowFilter | undefined {
  const chosen = chosenCodes(postings.codes, wanted);
  if (chosen.length === values.length) return undefined;
  const { starts, rows, inListOrder } = postings;
  const stretches = chosen.map((code) => rows.subarray(starts[code], starts[code + 1]));
  const [only] = chosen;
  const isOne = chosen.length === 1;
  return {
    size: stretches.reduce((sum, { length }) => sum + length, 0),
    inListOrder: inListOrder && chosen.length < 2,
    rows: () => joined(stretches),
    has: isOne ? (row) => codes[row] === only : amongCodes(codes, chosen),
  };
}

/** Looks up whichever is fewer: what is wanted among what there is, or the other way round. */
function chosenCodes(codes: Postings["codes"], wanted: ReadonlySet<Wanted>): readonly number[] {
  const found: (readonly number[])[] = [];
  if (wanted.size <= codes.size) for (const one of wanted) found.push(codes.get(one) ?? []);
  else for (const [one, some] of codes) if (wanted.has(one)) found.push(some);
  const [first = [], ...more] = found;
  return more.length === 0 ? first : [...new Set(found.flat())];
}

/** Judges codes when a row is asked for first. */
function amongCodes(codes: Uint16Array, chosen: readonly number[]): (row: number) => boolean {
  let isChosen: Uint8Array | undefined;
  return (row) => {
    if (isChosen === undefined) {
      isChosen = new Uint8Array(Math.max(-1, ...chosen) + 1);
      for (const code of chosen) isChosen[code] = 1;
    }
    return isChosen[codes[row] ?? 0] === 1;
  };
}

function joined(stretches: readonly Uint16Array[]): Uint16Array {
  const [only, second] = stretches;
  if (only !== undefined && second === undefined) return only;
  const rows = new Uint16Array(stretches.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const stretch of stretches) {
    rows.set(stretch, at);
    at += stretch.length;
  }
  return rows;
}
