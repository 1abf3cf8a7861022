/** Texts one after the other in one stretch of UTF-8, each ended by a line break, and those of them in which some bytes stand. */

export class PlainTexts {
  readonly bytes: Buffer;
  /** Where each text begins; one more at the end. */
  readonly starts: Uint32Array;

  constructor(bytes: Buffer, starts: Uint32Array) {
    this.bytes = bytes;
    this.starts = starts;
  }

  get byteLength(): number {
    return this.bytes.byteLength + this.starts.byteLength;
  }

  /** Numbers of the texts in which the bytes stand side by side, each once. */
  visitTextsWith(wanted: Buffer, visit: (text: number) => void): void {
    const { bytes, starts } = this;
    let text = 0;
    for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, starts[text + 1])) {
      text = textAt(starts, at, text);
      visit(text);
      if ((starts[text + 1] ?? 0) >= bytes.length) return;
    }
  }
}

/** Looks ahead in growing steps, then between the last two: hits may be near or far. */
function textAt(starts: Uint32Array, at: number, from: number): number {
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
