/** A segment in memory: its columns, sort orders, texts and outdated rows. */
import { doubleAt, uint16At } from "#shared/at.ts";
import type { SegmentEntry } from "#shared/company-index/manifest.ts";
import { type IndexRow, isTombstone } from "#shared/company-index/record.ts";
import { PlainTexts } from "#shared/company-index/search/plain-texts.ts";
import { allRows, type Postings, postingsOf } from "#shared/company-index/search/row-filter.ts";
import { Words } from "#shared/company-index/search/words.ts";
import type { GeoColumns, MainColumns, TextColumns } from "#shared/company-index/segment.ts";
import type { Delta, LooseNote, NewestVersions } from "#shared/company-index/versions.ts";

/** The columns with postings lists. A list is built when a filter first uses its column. */
export type PostedColumn = "statusId" | "assignedToUserId" | "city" | "tagIds";

export class LoadedSegment {
  readonly entry: SegmentEntry;
  readonly main: MainColumns;
  geo: GeoColumns | undefined;
  text: SegmentTexts | undefined;
  /** True after the first read of the segment. The first read does not sort the rows, so it responds sooner. */
  isRead = false;
  #byId: Uint16Array | undefined;
  #newest: Uint16Array | undefined;
  readonly #postings = new Map<PostedColumn, Postings>();

  constructor(entry: SegmentEntry, main: MainColumns) {
    this.entry = entry;
    this.main = main;
  }

  get count(): number {
    return this.main.count;
  }

  get places(): GeoColumns {
    if (this.geo === undefined) throw new Error("the coordinates of a segment were not loaded");
    return this.geo;
  }

  get texts(): SegmentTexts {
    if (this.text === undefined) throw new Error("the texts of a segment were not loaded");
    return this.text;
  }

  /** Returns a copy that has no texts and shares all other data. Returns the segment itself if it has no texts. */
  withoutText(): LoadedSegment {
    if (this.text === undefined) return this;
    const other = new LoadedSegment(this.entry, this.main);
    other.geo = this.geo;
    other.isRead = this.isRead;
    other.#byId = this.#byId;
    other.#newest = this.#newest;
    for (const [column, postings] of this.#postings) other.#postings.set(column, postings);
    return other;
  }

  /** The row numbers in list order. Undefined until `sortForLists` is called. */
  get newest(): Uint16Array | undefined {
    return this.#newest;
  }

  /** Number of rows to sort. It is 0 during the first request that reads the segment, because sorting pays only for later requests. */
  get unsortedRows(): number {
    return this.isRead && this.#newest === undefined ? this.count : 0;
  }

  sortForLists(): void {
    this.#newest = listOrder(this.main);
    this.#postings.clear();
  }

  /** Milliseconds since 1970. */
  updatedAt(row: number): number {
    return doubleAt(this.main.createdAt, row) + doubleAt(this.places.updatedAfter, row);
  }

  postings(column: PostedColumn): Postings {
    const known = this.#postings.get(column);
    if (known !== undefined) return known;
    const made = postingsOf(this.main[column], this.#newest);
    this.#postings.set(column, made);
    return made;
  }

  /** Returns the row of the prospect, or -1 if the segment does not contain it. */
  rowOf(id: number): number {
    const [first, last] = this.entry.zone.ids;
    if (id < first || id > last) return -1;
    const { ids } = this.main;
    this.#byId ??= idOrder(ids);
    let low = 0;
    let high = this.count - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const row = uint16At(this.#byId, middle);
      const found = doubleAt(ids, row);
      if (found === id) return row;
      if (found < id) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** Estimated bytes, including sort orders and postings lists that later reads may build. */
  get bytes(): number {
    const { geo, text, count, main } = this;
    const columns = [main.statusId, main.assignedToUserId, main.city, main.tagIds];
    const postings = columns.reduce((sum, { values }) => sum + count * 2 + values.length * 80 + 300, 0);
    return count * (24 + 10 + 4) + (geo === undefined ? 0 : count * 24) + (text?.byteLength ?? 0) + postings + 2_000;
  }
}

/** Finds words in texts or in phone numbers. `found` is a bit mask of the found words. */
export type TextFinder = (texts: PlainTexts | Words, visit: (text: number, found: number) => void) => void;

/** The texts of a segment. For each row, the text of the prospect comes first, and the texts of its notes follow. */
export class SegmentTexts {
  readonly rowOf: Uint16Array;
  readonly noteIds: Float64Array;
  readonly noteVersions: Float64Array;
  readonly sourceId: TextColumns["sourceId"];
  #texts: PlainTexts | Words;
  /** Each phone number is one word. */
  #digits: PlainTexts | Words;
  #isSearched = false;

  constructor({ bytes, starts, rowOf, noteIds, noteVersions, digits, digitStarts, sourceId }: TextColumns) {
    this.rowOf = rowOf;
    this.sourceId = sourceId;
    const isNote = (_: number, text: number): boolean => noteIds[text] !== 0;
    this.noteIds = noteIds.filter(isNote);
    this.noteVersions = noteVersions.filter(isNote);
    this.#digits = new PlainTexts(digits, digitStarts);
    this.#texts = new PlainTexts(bytes, starts);
  }

  /** May visit the same text several times. */
  find(inTexts: TextFinder, visit: (text: number, found: number) => void): void {
    this.#isSearched = true;
    inTexts(this.#texts, visit);
  }

  /** May visit the same row several times. */
  findInDigits(inDigits: TextFinder, visit: (row: number, found: number) => void): void {
    inDigits(this.#digits, visit);
  }

  /** Returns the position of the text's note in `noteIds`, or -1 for the text of a prospect. */
  noteOf(text: number): number {
    const row = uint16At(this.rowOf, text);
    return text > 0 && this.rowOf[text - 1] === row ? text - row - 1 : -1;
  }

  /** Bytes of text without a word index. It is 0 during the first search, which builds no word index, so it responds sooner. */
  get unindexedBytes(): number {
    return this.#isSearched && this.#texts instanceof PlainTexts ? this.#texts.bytes.length : 0;
  }

  makeWords(): void {
    if (this.#texts instanceof PlainTexts) this.#texts = new Words(this.#texts);
    if (this.#digits instanceof PlainTexts) this.#digits = new Words(this.#digits);
  }

  get byteLength(): number {
    const own = [this.rowOf, this.noteIds, this.noteVersions, this.#digits, this.#texts];
    const { codes, values } = this.sourceId;
    return own.reduce((sum, { byteLength }) => sum + byteLength + 100, codes.byteLength + 60 * values.length);
  }
}

/** A double represents whole numbers exactly up to this number of bits. */
const EXACT_BITS = 53;

const idOrder = (ids: Float64Array): Uint16Array => ascending(ids, allRows(ids.length));

/** Returns the rows in list order: the newest row first, and the higher id first if the creation times are equal. */
export function listOrder({ createdAt, ids }: { createdAt: Float64Array; ids: Float64Array }): Uint16Array {
  const byId = idOrder(ids);
  const ranks = new Uint16Array(ids.length);
  for (let rank = 0; rank < byId.length; rank++) ranks[uint16At(byId, rank)] = rank;
  const order = ascending(createdAt, ranks).reverse();
  for (let i = 0; i < order.length; i++) order[i] = uint16At(byId, uint16At(order, i));
  return order;
}

/** Returns `low`, sorted by `values` and then by itself. Packs each pair into one number: sorting with a comparison takes twice as long. */
function ascending(values: Float64Array, low: Uint16Array): Uint16Array {
  const room = 2 ** Math.ceil(Math.log2(values.length + 1));
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  if ((most - least + 1) * room > 2 ** EXACT_BITS) return compared(values, low);
  const packed = new Float64Array(values.length);
  for (let row = 0; row < packed.length; row++)
    packed[row] = (doubleAt(values, row) - least) * room + uint16At(low, row);
  packed.sort();
  const ordered = new Uint16Array(packed.length);
  for (let i = 0; i < ordered.length; i++) {
    const value = doubleAt(packed, i);
    ordered[i] = value - Math.floor(value / room) * room;
  }
  return ordered;
}

function compared(values: Float64Array, low: Uint16Array): Uint16Array {
  const lowOf = (row: number): number => uint16At(low, row);
  return allRows(values.length)
    .toSorted((a, b) => doubleAt(values, a) - doubleAt(values, b) || lowOf(a) - lowOf(b))
    .map(lowOf);
}

export interface SegmentInView {
  readonly segment: LoadedSegment;
  /** The position of the segment's part in the list of parts. */
  readonly age: number;
  /** Contains 1 for each row that a newer part or an unflushed entry replaces or deletes. Undefined if there is no such row. */
  readonly dead: Uint8Array | undefined;
}

export interface IndexView {
  readonly segments: readonly SegmentInView[];
  readonly noteVersions: NewestVersions;
  readonly looseNotes: readonly LooseNote[];
  readonly delta: Delta;
}

/** True if a newer part or an unflushed entry replaces this version of the note. `age` is the position of the version's part. */
export function isReplaced({ noteVersions, delta }: IndexView, noteId: number, version: number, age: number): boolean {
  const unflushed = delta.notes.get(noteId);
  return (unflushed !== undefined && unflushed.version >= version) || noteVersions.supersedes(noteId, version, age);
}

export function* liveRows({ prospects }: Delta): Generator<IndexRow> {
  for (const entry of prospects.values()) if (!isTombstone(entry)) yield entry;
}

/** Returns the rows that newer parts replace or delete, as in `SegmentInView.dead`. `age` is the position of the segment's part. */
export function deadRows({ main }: LoadedSegment, age: number, newest: NewestVersions): Uint8Array | undefined {
  if (newest.size === 0) return undefined;
  let dead: Uint8Array | undefined;
  for (let row = 0; row < main.count; row++) {
    if (!newest.supersedes(doubleAt(main.ids, row), doubleAt(main.versions, row), age)) continue;
    dead ??= new Uint8Array(main.count);
    dead[row] = 1;
  }
  return dead;
}

/** Returns a copy of `dead` that also marks the rows that unflushed entries replace or delete. Without such rows, returns `dead` itself. */
export function deadUnder(
  segment: LoadedSegment,
  dead: Uint8Array | undefined,
  { prospects }: Delta,
): Uint8Array | undefined {
  let result = dead;
  for (const id of prospects.keys()) {
    const row = segment.rowOf(id);
    if (row < 0) continue;
    if (result === dead) result = dead?.slice() ?? new Uint8Array(segment.count);
    if (result !== undefined) result[row] = 1;
  }
  return result;
}
