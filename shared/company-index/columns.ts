/** Columns of a segment: one field of all its rows, as short as its values allow. */
import type { ByteReader, ByteWriter } from "#shared/company-index/bytes.ts";

/** A column of few distinct values: each row holds the position of its value among them. */
export interface Coded<T> {
  readonly values: readonly T[];
  readonly codes: Uint16Array;
}

/** Whole numbers, each as its distance from the one before. */
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

/** `key` tells equal values apart from others; `writeValue` writes one of the distinct values. */
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
  // One value for all rows needs no codes.
  if (distinct.length > 1) for (const code of column) into.integer(code);
}

export function readCoded<T>(from: ByteReader, count: number, readValue: () => T): Coded<T> {
  const values = Array.from({ length: from.integer() }, readValue);
  const codes = new Uint16Array(count);
  if (values.length > 1) for (let i = 0; i < count; i++) codes[i] = from.integer();
  return { values, codes };
}

/** Decimals of a degree that most coordinates end at: about a centimetre. */
const SCALE = 1e7;

const scaled = (degrees: number): number | undefined => {
  const whole = Math.round(degrees * SCALE);
  return Object.is(whole / SCALE, degrees) ? whole : undefined;
};

/** Degrees exactly as given: decimals as distances from the row before, the few others as they are. `null` stays null. */
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

/** NaN stands for no coordinate. */
export function readDegrees(from: ByteReader, count: number): Float64Array {
  const values = readNumbers(from, count);
  for (let i = 0; i < count; i++) values[i] = (values[i] ?? 0) / SCALE;
  for (let others = from.integer(); others > 0; others--) values[from.integer()] = from.double();
  return values;
}
