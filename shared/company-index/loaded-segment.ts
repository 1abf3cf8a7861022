/** A segment in memory: the column groups that were needed so far, and orders of its rows that reads have asked for. */
import { idOrder, listOrder } from "#shared/company-index/list-order.ts";
import type { SegmentEntry } from "#shared/company-index/manifest.ts";
import { type Postings, postingsOf } from "#shared/company-index/postings.ts";
import type { GeoColumns, MainColumns } from "#shared/company-index/segment.ts";
import type { SegmentTexts } from "#shared/company-index/segment-texts.ts";

/** Columns that have postings as soon as a filter looks at them. */
export type PostedColumn = "statusId" | "assignedToUserId" | "city" | "tagIds";

export class LoadedSegment {
  readonly entry: SegmentEntry;
  readonly main: MainColumns;
  geo: GeoColumns | undefined;
  text: SegmentTexts | undefined;
  /** Whether a read has looked for rows in it. */
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

  /** Itself where it has none, else a segment with the same columns and orders. */
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

  /** Its rows as a list shows them; undefined as long as they have not been put in that order. */
  get newest(): Uint16Array | undefined {
    return this.#newest;
  }

  /** Rows that wait to be put in the order of a list; none before the first read, which is to answer soon. */
  get waiting(): number {
    return this.isRead && this.#newest === undefined ? this.count : 0;
  }

  putInOrder(): void {
    this.#newest = listOrder(this.main);
    this.#postings.clear();
  }

  postings(column: PostedColumn): Postings {
    const known = this.#postings.get(column);
    if (known !== undefined) return known;
    const made = postingsOf(this.main[column], this.#newest);
    this.#postings.set(column, made);
    return made;
  }

  /** Row of the prospect, or -1. */
  rowOf(id: number): number {
    const [first, last] = this.entry.zone.ids;
    if (id < first || id > last) return -1;
    const { ids } = this.main;
    this.#byId ??= idOrder(ids);
    let low = 0;
    let high = this.count - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const row = this.#byId[middle] ?? 0;
      const found = ids[row] ?? 0;
      if (found === id) return row;
      if (found < id) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** Bytes of memory, as the cache counts them: with the orders and postings that later reads make. */
  get bytes(): number {
    const { geo, text, count, main } = this;
    const columns = [main.statusId, main.assignedToUserId, main.city, main.tagIds];
    const postings = columns.reduce((sum, { values }) => sum + count * 2 + values.length * 80 + 300, 0);
    return count * (24 + 8 + 4) + (geo === undefined ? 0 : count * 16) + (text?.byteLength ?? 0) + postings + 2_000;
  }
}
