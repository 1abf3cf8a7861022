/** Counts the rows of CSV text that passes through, and knows whether it may end there. */
import { Transform } from "node:stream";

const QUOTE = 0x22;
const LINE_FEED = 0x0a;

export class RowCounter extends Transform {
  readonly #onRows: (rows: number) => void;
  #isQuoted = false;
  #isAtEnd = false;
  #ends = 0;

  constructor(onRows: (rows: number) => void) {
    super();
    this.#onRows = onRows;
  }

  /** Without the header. */
  get rows(): number {
    return Math.max(0, this.#ends - 1);
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: (error: Error | null, data: Buffer) => void): void {
    // A quotation mark within a cell is written twice, which changes nothing here.
    for (const byte of chunk) {
      if (byte === QUOTE) this.#isQuoted = !this.#isQuoted;
      else if (byte === LINE_FEED && !this.#isQuoted) this.#ends++;
    }
    if (chunk.length > 0) this.#isAtEnd = chunk.at(-1) === LINE_FEED && !this.#isQuoted;
    this.#onRows(this.rows);
    done(null, chunk);
  }

  override _flush(done: (error?: Error) => void): void {
    if (this.#isAtEnd) done();
    else done(new Error("the file ends within a row"));
  }
}
