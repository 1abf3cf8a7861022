/** The binary encoding of a company index: integers of variable length, columns, and compression with a checksum. */
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { at, doubleAt, uint16At } from "#shared/at.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** 2^28. Smaller numbers are encoded with bit operations, which support only 32 bits, and larger ones with divisions. */
const SMALL = 0x10000000;

export class ByteWriter {
  #bytes = new Uint8Array(4_096);
  #length = 0;

  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Writes a whole number from 0 to 2^53 - 1 as LEB128. */
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

  /** Writes a whole number between -2^52 and 2^52 (both excluded) in zigzag encoding. Throws a RangeError for other numbers. */
  signed(value: number): void {
    if (Math.abs(value) >= 2 ** 52) throw new RangeError(`${value} is beyond 2^52`);
    this.integer(value < 0 ? -2 * value - 1 : 2 * value);
  }

  double(value: number): void {
    this.#reserve(8);
    new DataView(this.#bytes.buffer).setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  /** Writes the bytes without their length. The reader must therefore know the length. */
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

/** Reads values that a ByteWriter has written. Throws a RangeError if the bytes end too early. */
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

/** A dictionary-encoded column: the distinct values, and for each row the position of its value. */
export interface Coded<T> {
  readonly values: readonly T[];
  readonly codes: Uint16Array;
}

export const valueAt = <T>({ values, codes }: Coded<T>, row: number): T => at(values, uint16At(codes, row));

/** The index stores 0 for null, because no record has the id 0. */
export const idOrZero = (id: number | null): number => id ?? 0;

/** Writes the differences between successive values, because small numbers need fewer bytes. */
export function writeNumbers(into: ByteWriter, values: readonly number[]): void {
  let previous = 0;
  for (const value of values) {
    into.signed(value - previous);
    previous = value;
  }
}

export function readNumbers(from: ByteReader, count: number): Float64Array {
  const values = new Float64Array(count);
  let value = 0;
  for (let i = 0; i < count; i++) {
    value += from.signed();
    values[i] = value;
  }
  return values;
}

/** Writes a dictionary-encoded column. `key` must return the same key for equal values. `writeValue` writes one distinct value. */
export function writeCoded<T>(
  into: ByteWriter,
  values: readonly T[],
  key: (value: T) => unknown,
  writeValue: (value: T) => void,
): void {
  const codes = new Map<unknown, number>();
  const distinct: T[] = [];
  const column = values.map((value) => {
    const known = codes.get(key(value));
    if (known !== undefined) return known;
    codes.set(key(value), distinct.length);
    return distinct.push(value) - 1;
  });
  into.integer(distinct.length);
  for (const value of distinct) writeValue(value);
  if (distinct.length > 1) for (const code of column) into.integer(code);
}

export function readCoded<T>(from: ByteReader, count: number, readValue: () => T): Coded<T> {
  const values = Array.from({ length: from.integer() }, readValue);
  const codes = new Uint16Array(count);
  if (values.length > 1) for (let i = 0; i < count; i++) codes[i] = from.integer();
  return { values, codes };
}

/** Coordinates are integers in units of 1e-7 degrees (about a centimetre), because most have at most seven decimals. */
const SCALE = 1e7;

const scaled = (degrees: number): number | undefined => {
  const whole = Math.round(degrees * SCALE);
  return Object.is(whole / SCALE, degrees) ? whole : undefined;
};

/** Writes the differences between successive integers, and then a list of the values that have more decimals or are null (NaN). */
export function writeDegrees(into: ByteWriter, values: readonly (number | null)[]): void {
  const others: [row: number, degrees: number][] = [];
  let previous = 0;
  for (const [row, degrees] of values.entries()) {
    const whole = degrees === null ? undefined : scaled(degrees);
    if (whole === undefined) others.push([row, degrees ?? Number.NaN]);
    into.signed((whole ?? previous) - previous);
    previous = whole ?? previous;
  }
  into.integer(others.length);
  for (const [row, degrees] of others) {
    into.integer(row);
    into.double(degrees);
  }
}

export function readDegrees(from: ByteReader, count: number): Float64Array {
  const values = readNumbers(from, count);
  for (let i = 0; i < count; i++) values[i] = doubleAt(values, i) / SCALE;
  for (let others = from.integer(); others > 0; others--) values[from.integer()] = from.double();
  return values;
}

/** Compression level of zstd. Higher levels save almost nothing on columns and take several times as long. */
const LEVEL = 9;

/** Bytes of the output buffer. With the default of 16 KB, decompression of texts takes 1.5 times as long. */
const CHUNK_BYTES = 128 * 1024;

/** Data of the company index is missing or damaged. A rebuild restores the index from the table's rows. */
export class IndexUnreadable extends Error {
  override name = "IndexUnreadable";
}

export const compress = (bytes: Uint8Array): Uint8Array =>
  zstdCompressSync(bytes, {
    params: { [constants.ZSTD_c_compressionLevel]: LEVEL, [constants.ZSTD_c_checksumFlag]: 1 },
  });

/** Throws IndexUnreadable with the label in the message if the bytes are damaged. */
export function decompress<T>(label: string, compressed: Uint8Array, read: (bytes: Uint8Array) => T): T {
  try {
    return read(zstdDecompressSync(compressed, { chunkSize: CHUNK_BYTES }));
  } catch (error) {
    throw new IndexUnreadable(`${label} is damaged`, { cause: error });
  }
}
