/**
 * The size of a company's unflushed entries: recent changes that are not in the stored search index yet. The size decides when a flush
 * starts and merges the entries into the index.
 */
import * as z from "zod/mini";
import type { Item } from "#shared/db/expression.ts";

export interface DeltaSize {
  /** Sum of the weights of the entries. An entry has a weight of 1, plus 1 for each 1 024 bytes of its fields and text. */
  readonly weight: number;
  /**
   * Approximate bytes of the entries and the index's head row, which one Query reads. Texts in separate rows do not count. These bytes
   * determine how many read units DynamoDB charges for the Query.
   */
  readonly bytes: number;
}

/**
 * Maximum bytes of the unflushed entries (recent changes) and the head row for which DynamoDB charges at most two read units. A request for
 * changes reads both, and it must not cost more than two units if it finds no change.
 */
export const TWO_UNITS_BYTES = 8_192;

/** Bytes of the fields and text of an entry that increase its weight by 1. */
const ENTRY_BYTES = 1_024;

/**
 * The attributes that determine the weight of an entry. `aside` is the number of bytes of a text in a separate row. It is undefined if
 * the entry contains its text.
 */
const Weighed = z.object({
  row: z.optional(z.string()),
  note: z.optional(z.string()),
  aside: z.optional(z.number()),
});

/** Returns the total size of these stored entries. `rows` must not contain the head row. */
export function deltaSizeOf(rows: readonly Item[]): DeltaSize {
  let [weight, bytes] = [0, 0];
  for (const row of rows) {
    weight += weightOf(row);
    bytes += bytesOf(row);
  }
  return { weight, bytes };
}

/** Returns the weight of a stored entry, which is at least 1. */
export function weightOf(row: Item): number {
  const { row: fields = "", note = "", aside = 0 } = Weighed.parse(row);
  return 1 + Math.floor((fields.length + note.length + aside) / ENTRY_BYTES);
}

/**
 * Returns the approximate size of a row: the lengths of its attribute names and values. For a number, DynamoDB counts only about half a
 * byte for each digit.
 */
export function bytesOf(row: Item): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(row)) {
    bytes += name.length + bytesOfValue(value);
  }
  return bytes;
}

function bytesOfValue(value: Item[string]): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  return value instanceof Uint8Array ? value.length : JSON.stringify(value).length;
}
