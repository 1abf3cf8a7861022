/** Rows of a segment by their numbers: which of them a filter lets pass, and lists that get shorter from filter to filter. */

export interface RowFilter {
  /** How many rows pass, dead ones included: the filter that lets the fewest pass is asked first. */
  readonly size: number;
  /** Each once, in any order. Not to be changed. */
  rows(): Uint16Array;
  has(row: number): boolean;
}

export const noRows: RowFilter = { size: 0, rows: () => new Uint16Array(), has: () => false };

let numbers = new Uint16Array();

/** 0, 1, 2 …: not to be changed, for all segments share them. */
export function allRows(count: number): Uint16Array {
  if (numbers.length < count) numbers = Uint16Array.from({ length: count }, (_, row) => row);
  return numbers.subarray(0, count);
}

export function keepRows(rows: Uint16Array, isKept: (row: number) => boolean): Uint16Array {
  const kept = new Uint16Array(rows.length);
  let size = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] ?? 0;
    if (isKept(row)) kept[size++] = row;
  }
  return kept.subarray(0, size);
}

/** Rows that are found one after the other, some of them more than once. */
export class RowSet implements RowFilter {
  readonly #flags: Uint8Array;
  readonly #rows: Uint16Array;
  #size = 0;

  /** Of a segment of so many rows. */
  constructor(count: number) {
    this.#flags = new Uint8Array(count);
    this.#rows = new Uint16Array(count);
  }

  get size(): number {
    return this.#size;
  }

  add(row: number): void {
    if (this.#flags[row] === 1) return;
    this.#flags[row] = 1;
    this.#rows[this.#size++] = row;
  }

  rows(): Uint16Array {
    return this.#rows.subarray(0, this.#size);
  }

  has(row: number): boolean {
    return this.#flags[row] === 1;
  }
}
