/** One page of matches in list order: newest created first; of the same instant, the higher id first. */
import type { Matches, SegmentMatches } from "#shared/company-index/search/match.ts";

export interface ProspectRef {
  readonly id: number;
  /** Of the prospect's row, as the index knows it. */
  readonly version: number;
  readonly createdAt: number;
}

const inListOrder = (a: ProspectRef, b: ProspectRef): number => b.createdAt - a.createdAt || b.id - a.id;

/** The places from `offset` on, at most `count`. Only the page itself is put in order, not what comes before or after it. */
export function pageOf(matches: Matches, offset: number, count: number): ProspectRef[] {
  const wanted = Math.min(offset + count, matches.total);
  if (offset >= wanted) return [];
  const first = new FirstRefs(wanted, matches.total);
  // The newest runs first: most of the older rows then come too late.
  for (const segment of matches.segments.toReversed()) first.offerAll(segment);
  for (const { id, version, createdAt } of matches.unflushed) first.offer(createdAt, id, version);
  return first.from(offset);
}

/** Where all rows of a segment are found, their order is known once the segment is in order. */
function ordered({ inView, rows, inListOrder }: SegmentMatches): Pick<SegmentMatches, "rows" | "inListOrder"> {
  const { count, newest } = inView.segment;
  return newest !== undefined && rows.length === count ? { rows: newest, inListOrder: true } : { rows, inListOrder };
}

/** Room for some more than are wanted, so that they are seldom parted. */
const SPARE = 512;

/** Those that come first in list order, of all that are offered; side by side in typed arrays, for a page may be the last of a million. */
class FirstRefs {
  readonly #wanted: number;
  readonly #createdAt: Float64Array;
  readonly #ids: Float64Array;
  readonly #versions: Float64Array;
  #size = 0;
  /** What was created before this is not among the wanted ones. */
  #earliest = Number.NEGATIVE_INFINITY;

  constructor(wanted: number, offered: number) {
    const room = Math.min(offered, 2 * wanted + SPARE);
    this.#wanted = wanted;
    this.#createdAt = new Float64Array(room);
    this.#ids = new Float64Array(room);
    this.#versions = new Float64Array(room);
  }

  /** Of rows in list order, no more than the wanted ones can be among them; and none behind one that comes too late. */
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

  /** The wanted ones but the first `offset`, in order. */
  from(offset: number): ProspectRef[] {
    this.#keepWanted();
    this.#part(offset);
    const places: ProspectRef[] = [];
    for (let at = offset; at < this.#size; at++) {
      places.push({ id: this.#ids[at] ?? 0, version: this.#versions[at] ?? 0, createdAt: this.#createdAt[at] ?? 0 });
    }
    return places.sort(inListOrder);
  }

  #keepWanted(): void {
    if (this.#size <= this.#wanted) return;
    this.#part(this.#wanted - 1);
    this.#size = this.#wanted;
    this.#earliest = this.#createdAt[this.#wanted - 1] ?? 0;
  }

  /** Puts at `nth` what belongs there in list order, what comes first before it and the rest behind it: Hoare's selection. */
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

/** Newest created first; of the same instant, the higher id first. */
export function* inOrder({ segments, unflushed, total }: Matches): Generator<ProspectRef, void, undefined> {
  const ids = new Float64Array(total);
  const versions = new Float64Array(total);
  const createdAt = new Float64Array(total);
  let size = 0;
  const add = (place: ProspectRef): void => {
    ids[size] = place.id;
    versions[size] = place.version;
    createdAt[size++] = place.createdAt;
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
