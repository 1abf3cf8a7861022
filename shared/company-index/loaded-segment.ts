/** A segment in memory: the column groups that were needed so far, and the order of its ids. */
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
  #byId: Uint16Array | undefined;
  readonly #postings = new Map<PostedColumn, Postings>();

  constructor(entry: SegmentEntry, main: MainColumns) {
    this.entry = entry;
    this.main = main;
  }

  get count(): number {
    return this.main.count;
  }

  postings(column: PostedColumn): Postings {
    const known = this.#postings.get(column);
    if (known !== undefined) return known;
    const made = postingsOf(this.main[column]);
    this.#postings.set(column, made);
    return made;
  }

  /** Row of the prospect, or -1. */
  rowOf(id: number): number {
    const [first, last] = this.entry.zone.ids;
    if (id < first || id > last) return -1;
    const { ids } = this.main;
    this.#byId ??= rowNumbers(this.count).sort((a, b) => (ids[a] ?? 0) - (ids[b] ?? 0));
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

  /** Bytes of memory, as the cache counts them. */
  get bytes(): number {
    const { geo, text, count } = this;
    let postingBytes = 0;
    for (const { starts } of this.#postings.values()) postingBytes += count * 2 + starts.length * 4 + 300;
    return count * (24 + 8 + 2) + (geo === undefined ? 0 : count * 16) + (text?.byteLength ?? 0) + postingBytes + 2_000;
  }
}

const rowNumbers = (count: number): Uint16Array => Uint16Array.from({ length: count }, (_, i) => i);
