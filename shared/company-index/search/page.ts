/**
 * Returns one page of matches, or all matches, in list order: the newest first, and the higher id first if the creation times are equal.
 */
import type { Matches, SegmentMatches } from "#shared/company-index/search/match.ts";

export interface ProspectRef {
  readonly id: number;
  /**
   * The version of the prospect in the index. A caller compares it with the version of the prospect's row and thereby notices that one of
   * them is outdated.
   */
  readonly version: number;
  readonly createdAt: number;
}

const inListOrder = (a: ProspectRef, b: ProspectRef): number => b.createdAt - a.createdAt || b.id - a.id;

/** Returns at most `count` matches from the position `offset` on. Only these matches are sorted. */
export function pageOf(matches: Matches, offset: number, count: number): ProspectRef[] {
  const wanted = Math.min(offset + count, matches.total);
  if (offset >= wanted) return [];
  const first = new FirstRefs(wanted, matches.total);
  // The rows of the newest runs (batches of rows that were stored together) are offered first, so that most older rows are rejected at
  // once.
  for (const segment of matches.segments.toReversed()) first.offerAll(segment);
  for (const { id, version, createdAt } of matches.unflushed) first.offer(createdAt, id, version);
  return first.from(offset);
}

/** Returns the rows in list order if this order is already known. This is the case if all rows of a sorted segment match. */
function ordered({ inView, rows, inListOrder }: SegmentMatches): Pick<SegmentMatches, "rows" | "inListOrder"> {
  const { count, newest } = inView.segment;
  return newest !== undefined && rows.length === count ? { rows: newest, inListOrder: true } : { rows, inListOrder };
}

/**
 * Additional capacity of the arrays. When they are full, all rows except the newest `wanted` rows are discarded. With more capacity this
 * happens less often.
 */
const SPARE = 512;

/**
 * Keeps the newest `wanted` of all offered rows. A page at the end of a list needs all rows before it, so there may be many. Parallel
 * typed arrays save memory.
 */
class FirstRefs {
  readonly #wanted: number;
  readonly #createdAt: Float64Array;
  readonly #ids: Float64Array;
  readonly #versions: Float64Array;
  #size = 0;
  /** Rows with an earlier creation time are rejected. Milliseconds since 1970. */
  #earliest = Number.NEGATIVE_INFINITY;

  constructor(wanted: number, offered: number) {
    const room = Math.min(offered, 2 * wanted + SPARE);
    this.#wanted = wanted;
    this.#createdAt = new Float64Array(room);
    this.#ids = new Float64Array(room);
    this.#versions = new Float64Array(room);
  }

  /**
   * Offers all matches of a segment (up to 4 096 rows of the index). If they are sorted by creation time, it stops at the first row that
   * is too old.
   */
  offerAll(matches: SegmentMatches): void {
    const { main, entry } = matches.inView.segment;
    const { ids, versions, createdAt } = main;
    let earliest = this.#earliest;
    if (entry.zone.createdAt[1] < earliest) return;
    const { rows, inListOrder } = ordered(matches);
    const end = inListOrder ? Math.min(rows.length, this.#wanted) : rows.length;
    for (let i = 0; i < end; i++) {
      const row = rows[i] ?? 0;
      const at = createdAt[row] ?? 0;
      if (at < earliest) {
        if (inListOrder) return;
        continue;
      }
      this.offer(at, ids[row] ?? 0, versions[row] ?? 0);
      earliest = this.#earliest;
    }
  }

  offer(createdAt: number, id: number, version: number): void {
    if (createdAt < this.#earliest) return;
    if (this.#size === this.#createdAt.length) this.#keepWanted();
    this.#createdAt[this.#size] = createdAt;
    this.#ids[this.#size] = id;
    this.#versions[this.#size] = version;
    this.#size++;
  }

  /** Returns the kept rows without the first `offset` ones, the newest first. */
  from(offset: number): ProspectRef[] {
    this.#keepWanted();
    this.#part(offset);
    const refs: ProspectRef[] = [];
    for (let at = offset; at < this.#size; at++) {
      refs.push({ id: this.#ids[at] ?? 0, version: this.#versions[at] ?? 0, createdAt: this.#createdAt[at] ?? 0 });
    }
    return refs.sort(inListOrder);
  }

  #keepWanted(): void {
    if (this.#size <= this.#wanted) return;
    this.#part(this.#wanted - 1);
    this.#size = this.#wanted;
    this.#earliest = this.#createdAt[this.#wanted - 1] ?? 0;
  }

  /**
   * Quickselect with Hoare's partition scheme: moves the row with rank `nth` to the index `nth`. Afterwards, rows of a lower rank are
   * before it and the others are behind it.
   */
  #part(nth: number): void {
    let low = 0;
    let high = this.#size - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const [createdAt, id] = [this.#createdAt[middle] ?? 0, this.#ids[middle] ?? 0];
      let left = low;
      let right = high;
      while (left <= right) {
        while (this.#order(left, createdAt, id) < 0) left++;
        while (this.#order(right, createdAt, id) > 0) right--;
        if (left <= right) this.#swap(left++, right--);
      }
      if (nth <= right) high = right;
      else if (nth >= left) low = left;
      else return;
    }
  }

  #order(at: number, createdAt: number, id: number): number {
    return createdAt - (this.#createdAt[at] ?? 0) || id - (this.#ids[at] ?? 0);
  }

  #swap(a: number, b: number): void {
    for (const column of [this.#createdAt, this.#ids, this.#versions]) {
      const kept = column[a] ?? 0;
      column[a] = column[b] ?? 0;
      column[b] = kept;
    }
  }
}

/** Yields all matches, the newest first. It sorts them in typed arrays, because there may be millions. */
export function* inOrder({ segments, unflushed, total }: Matches): Generator<ProspectRef, void, undefined> {
  const ids = new Float64Array(total);
  const versions = new Float64Array(total);
  const createdAt = new Float64Array(total);
  let size = 0;
  const add = (ref: ProspectRef): void => {
    ids[size] = ref.id;
    versions[size] = ref.version;
    createdAt[size++] = ref.createdAt;
  };
  for (const { inView, rows } of segments) {
    const { main } = inView.segment;
    for (const row of rows) {
      add({ id: main.ids[row] ?? 0, version: main.versions[row] ?? 0, createdAt: main.createdAt[row] ?? 0 });
    }
  }
  for (const row of unflushed) add(row);
  const order = Uint32Array.from({ length: size }, (_, at) => at).sort(
    (a, b) => (createdAt[b] ?? 0) - (createdAt[a] ?? 0) || (ids[b] ?? 0) - (ids[a] ?? 0),
  );
  for (const at of order) yield { id: ids[at] ?? 0, version: versions[at] ?? 0, createdAt: createdAt[at] ?? 0 };
}
