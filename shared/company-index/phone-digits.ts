/** The digits of a segment's phones, row by row, and the rows in which some stand side by side. */

export class PhoneDigits {
  /** Each row's phones, one per line. */
  readonly #bytes: Buffer;
  /** Where each row's begin; one more at the end. */
  readonly #starts: Uint32Array;

  constructor(bytes: Buffer, starts: Uint32Array) {
    this.#bytes = bytes;
    this.#starts = starts;
  }

  get bytes(): number {
    return this.#bytes.byteLength + this.#starts.byteLength + 200;
  }

  /** Each row once. */
  *rowsWith(wanted: Buffer): Generator<number> {
    const [bytes, starts] = [this.#bytes, this.#starts];
    let row = 0;
    for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, starts[row + 1])) {
      row = rowAt(starts, at, row);
      yield row;
      if ((starts[row + 1] ?? 0) >= bytes.length) return;
    }
  }
}

/** Looks ahead in growing steps, then between the last two: hits may be near or far. */
function rowAt(starts: Uint32Array, at: number, from: number): number {
  let low = from;
  let step = 1;
  while ((starts[low + step] ?? Number.POSITIVE_INFINITY) <= at) {
    low += step;
    step *= 2;
  }
  let high = low + step;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if ((starts[middle] ?? Number.POSITIVE_INFINITY) <= at) low = middle;
    else high = middle;
  }
  return low;
}
