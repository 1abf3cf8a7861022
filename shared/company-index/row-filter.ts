/** Rows of a segment by their numbers: which of them a filter lets pass, and lists that get shorter from filter to filter. */

export interface RowFilter {
  /** How many rows pass, dead ones included: the filter that lets the fewest pass is asked first. */
  readonly size: number;
  /** Whether `rows` gives them as a list shows them: newest first. */
  readonly inListOrder: boolean;
  /** Each once. Not to be changed. */
  rows(): Uint16Array;
  has(row: number): boolean;
}

export const noRows: RowFilter = { size: 0, inListOrder: true, rows: () => new Uint16Array(), has: () => false };

let numbers = new Uint16Array();

/** 0, 1, 2 …: not to be changed, for all segments share them. */
export function allRows(count: number): Uint16Array {
  if (numbers.length < count) numbers = Uint16Array.from({ length: count }, (_, row) => row);
  return numbers.subarray(0, count);
}

/** In the order in which they come. */
export function keepRows(rows: Uint16Array, isKept: (row: number) => boolean): Uint16Array {
  const kept = new Uint16Array(rows.length);
  let size = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] ?? 0;
    if (isKept(row)) kept[size++] = row;
  }
  return kept.subarray(0, size);
}

/** So many rows are looked through one by one. A rare word has that many in a segment, and bits for all rows would cost more. */
const FEW = 8;

/** Rows that are found one after the other, some of them more than once. */
export class RowSet implements RowFilter {
  readonly inListOrder = false;
  readonly #count: number;
  readonly #rows: number[] = [];
  #bits: Uint32Array | undefined;

  /** Of a segment of so many rows. */
  constructor(count: number) {
    this.#count = count;
  }

  get size(): number {
    return this.#rows.length;
  }

  add(row: number): void {
    if (this.has(row)) return;
    this.#rows.push(row);
    if (this.#bits !== undefined) mark(this.#bits, row);
    else if (this.#rows.length > FEW) this.#bits = this.#marked();
  }

  #marked(): Uint32Array {
    const bits = new Uint32Array((this.#count + 31) >>> 5);
    for (const row of this.#rows) mark(bits, row);
    return bits;
  }

  rows(): Uint16Array {
    return new Uint16Array(this.#rows);
  }

  has(row: number): boolean {
    const bits = this.#bits;
    if (bits === undefined) return this.#rows.includes(row);
    return (((bits[row >>> 5] ?? 0) >>> (row & 31)) & 1) === 1;
  }
}

function mark(bits: Uint32Array, row: number): void {
  bits[row >>> 5] = (bits[row >>> 5] ?? 0) | (1 << (row & 31));
}
