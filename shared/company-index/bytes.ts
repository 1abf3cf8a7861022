/** Bytes of a segment, written and read one after the other. Integers are LEB128 varints up to 2^53 - 1. */

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** 2^28: below it, an integer fits bit operations on 32 bits with room for one more group of seven. */
const SMALL = 0x10000000;

export class ByteWriter {
  #bytes = new Uint8Array(4_096);
  #length = 0;

  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** A whole number from 0 to 2^53 - 1. */
  integer(value: number): void {
    this.#reserve(8);
    let rest = value;
    while (rest >= SMALL) {
      this.#bytes[this.#length++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    while (rest >= 128) {
      this.#bytes[this.#length++] = (rest & 127) | 128;
      rest >>>= 7;
    }
    this.#bytes[this.#length++] = rest;
  }

  /** A whole number between -2^52 and 2^52; small ones of either sign stay short. Throws a RangeError beyond. */
  signed(value: number): void {
    if (Math.abs(value) >= 2 ** 52) throw new RangeError(`${value} is beyond 2^52`);
    this.integer(value < 0 ? -2 * value - 1 : 2 * value);
  }

  double(value: number): void {
    this.#reserve(8);
    new DataView(this.#bytes.buffer).setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  /** As they are: the reader must know how many. */
  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  text(value: string): void {
    const bytes = encoder.encode(value);
    this.integer(bytes.length);
    this.raw(bytes);
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + count));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}

/** Throws a RangeError where the bytes end too soon. */
export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get done(): boolean {
    return this.#at === this.#bytes.length;
  }

  integer(): number {
    let value = 0;
    let factor = 1;
    for (;;) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw new RangeError("the bytes end within an integer");
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      factor *= 128;
    }
  }

  signed(): number {
    const value = this.integer();
    return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
  }

  double(): number {
    const value = this.#view.getFloat64(this.#at, true);
    this.#at += 8;
    return value;
  }

  /** A view, not a copy. */
  raw(count: number): Uint8Array {
    if (this.#at + count > this.#bytes.length) throw new RangeError("the bytes end too soon");
    const bytes = this.#bytes.subarray(this.#at, this.#at + count);
    this.#at += count;
    return bytes;
  }

  text(): string {
    return decoder.decode(this.raw(this.integer()));
  }
}
