/** Sorts rows by geohash, merges sorted streams of rows, and divides rows into segments. */
import { at } from "#shared/at.ts";
import { GEOHASH_BITS, geohashAt } from "#shared/company-index/geohash.ts";
import type { IndexRow } from "#shared/company-index/record.ts";
import { columnsOf, encodeSegment, type Group, type RowWithNotes, rowsOf } from "#shared/company-index/segment.ts";

/** Maximum rows of a segment. Row numbers fit into 16 bits, and each group of columns usually fits into one item. */
export const SEGMENT_ROWS = 4_096;
/** Maximum number of characters of all texts in a segment, to limit the memory. */
const SEGMENT_TEXT = 2_000_000;

const geohashOf = ({ lat, lng }: IndexRow): number => geohashAt(lat, lng);

export const byGeohash = (a: { geohash: number; id: number }, b: { geohash: number; id: number }): number =>
  a.geohash - b.geohash || a.id - b.id;

/** Cuts the rows where successive geohashes differ most. A segment then covers a compact area, and a bounding box overlaps few segments. */
export function* cutIntoSegments(
  sorted: Iterable<RowWithNotes>,
  maxRows: number = SEGMENT_ROWS,
): Generator<RowWithNotes[]> {
  let waiting: RowWithNotes[] = [];
  let length = 0;
  for (const entry of sorted) {
    while (waiting.length === maxRows || (length > SEGMENT_TEXT && waiting.length > 0)) {
      const segment = waiting.slice(0, largestStep(waiting, entry));
      yield segment;
      waiting = waiting.slice(segment.length);
      length = textLength(waiting);
    }
    waiting.push(entry);
    length += textLength([entry]);
  }
  if (waiting.length > 0) yield waiting;
}

/** The minimum share of the waiting rows that goes into a segment. It prevents many small segments and a long part manifest. */
const LEAST_SHARE = 1 / 4;

/** Returns how many rows precede the largest step between geohashes, or the last of equal steps. `next` is the first row after `rows`. */
function largestStep(rows: readonly RowWithNotes[], next: RowWithNotes): number {
  let best = rows.length;
  let bestStep = -1;
  const least = Math.max(1, Math.floor(rows.length * LEAST_SHARE));
  const geohashes = [...rows.slice(least - 1), next].map(({ row }) => geohashOf(row));
  for (const [i, following] of geohashes.slice(1).entries()) {
    const step = stepBetween(at(geohashes, i), following);
    if (step >= bestStep) [best, bestStep] = [least + i, step];
  }
  return best;
}

const LOW = 2 ** 26;

/** Returns the size of the step between two geohashes: the number of bits that follow their common first bits. */
function stepBetween(geohash: number, following: number): number {
  if (geohash < 0) return following < 0 ? 0 : GEOHASH_BITS + 1;
  const high = Math.floor(geohash / LOW) ^ Math.floor(following / LOW);
  return high === 0 ? 32 - Math.clz32((geohash % LOW) ^ (following % LOW)) : 58 - Math.clz32(high);
}

const textLength = (entries: readonly RowWithNotes[]): number =>
  entries.reduce(
    (sum, { row, notes }) => sum + row.text.length + notes.reduce((own, { text }) => own + text.length, 0),
    0,
  );

export const sortedByGeohash = (entries: readonly RowWithNotes[]): RowWithNotes[] =>
  entries
    .map((entry) => ({ entry, geohash: geohashOf(entry.row), id: entry.row.id }))
    .sort(byGeohash)
    .map(({ entry }) => entry);

export function* mergeSorted(streams: readonly Iterator<RowAtGeohash, undefined>[]): Generator<RowWithNotes> {
  const heads = streams.map((stream) => stream.next());
  for (;;) {
    let first = -1;
    for (const [i, head] of heads.entries()) {
      const best = heads[first];
      if (head.done !== true && (best === undefined || best.done === true || byGeohash(head.value, best.value) < 0))
        first = i;
    }
    const head = heads[first];
    const stream = streams[first];
    if (head === undefined || stream === undefined || head.done === true) return;
    yield head.value.entry;
    heads[first] = stream.next();
  }
}

export interface RowAtGeohash {
  readonly geohash: number;
  readonly id: number;
  readonly entry: RowWithNotes;
}

export const atGeohash = (entry: RowWithNotes): RowAtGeohash => ({
  geohash: geohashOf(entry.row),
  id: entry.row.id,
  entry,
});

const CHUNK_ROWS = 32_768;
const CHUNK_TEXT = 16_000_000;

type Packed = Record<Group, Uint8Array>;

/** Sorts many rows by geohash. Sorted blocks of rows stay compressed in memory until they are merged. */
export class RowSorter {
  #waiting: RowWithNotes[] = [];
  #length = 0;
  readonly #chunks: Packed[][] = [];

  add(entry: RowWithNotes): void {
    this.#waiting.push(entry);
    this.#length += textLength([entry]);
    if (this.#waiting.length >= CHUNK_ROWS || this.#length >= CHUNK_TEXT) this.#pack();
  }

  /** Call it only once, because it frees the rows. */
  *sorted(): Generator<RowWithNotes> {
    this.#pack();
    yield* mergeSorted(this.#chunks.map(decodedRows));
  }

  #pack(): void {
    if (this.#waiting.length === 0) return;
    this.#chunks.push([...cutIntoSegments(sortedByGeohash(this.#waiting))].map(encodeSegment));
    this.#waiting = [];
    this.#length = 0;
  }
}

export function* decodedRows(segments: Packed[]): Generator<RowAtGeohash, undefined> {
  for (let next = segments.shift(); next !== undefined; next = segments.shift()) {
    for (const entry of rowsOf(columnsOf("sorted rows", next))) yield atGeohash(entry);
  }
  return undefined;
}
