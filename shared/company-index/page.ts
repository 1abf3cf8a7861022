/** One page of matches in list order: newest created first; of the same instant, the higher id first. */
import type { Matches, SegmentMatches } from "#shared/company-index/match.ts";

export interface Place {
  readonly id: number;
  /** Of the prospect's row, as the index knows it. */
  readonly version: number;
  readonly createdAt: number;
}

const inListOrder = (a: Place, b: Place): number => b.createdAt - a.createdAt || b.id - a.id;

/** The places from `offset` on, at most `count`. */
export function pageOf(matches: Matches, offset: number, count: number): Place[] {
  const places: Place[] = [];
  let skipped = 0;
  for (const place of inOrder(matches)) {
    if (places.length === count) break;
    if (skipped++ >= offset) places.push(place);
  }
  return places;
}

/** All of them, one after the other, by merging the orders that the segments keep. */
export function* inOrder(matches: Matches): Generator<Place> {
  const heap = new Heap();
  const unflushed = matches.unflushed
    .map(({ id, version, createdAt }) => ({ id, version, createdAt }))
    .sort(inListOrder);
  heap.add(unflushed.values());
  for (const segment of matches.segments) heap.add(newestFirst(segment));
  for (let place = heap.take(); place !== undefined; place = heap.take()) yield place;
}

function* newestFirst({ inView: { segment }, rows }: SegmentMatches): Generator<Place, undefined> {
  const { ids, versions, createdAt } = segment.main;
  for (const row of segment.newestFirst) {
    if (rows[row] === 0) continue;
    yield { id: ids[row] ?? 0, version: versions[row] ?? 0, createdAt: createdAt[row] ?? 0 };
  }
  return undefined;
}

interface Head {
  place: Place;
  readonly rest: Iterator<Place>;
}

/** A binary heap of ordered sequences, the one whose next place comes first on top. */
class Heap {
  readonly #heads: Head[] = [];

  add(rest: Iterator<Place>): void {
    const next = rest.next();
    if (next.done === true) return;
    this.#heads.push({ place: next.value, rest });
    for (let at = this.#heads.length - 1; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (!this.#comesFirst(at, parent)) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  take(): Place | undefined {
    const top = this.#heads[0];
    if (top === undefined) return undefined;
    const { place } = top;
    const next = top.rest.next();
    const last = next.done === true ? this.#heads.pop() : undefined;
    if (next.done !== true) top.place = next.value;
    else if (last !== undefined && last !== top) this.#heads[0] = last;
    this.#sink();
    return place;
  }

  #sink(): void {
    for (let at = 0; ; ) {
      let first = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < this.#heads.length && this.#comesFirst(child, first)) first = child;
      }
      if (first === at) return;
      this.#swap(at, first);
      at = first;
    }
  }

  #comesFirst(a: number, b: number): boolean {
    const [one, other] = [this.#heads[a], this.#heads[b]];
    return one !== undefined && other !== undefined && inListOrder(one.place, other.place) < 0;
  }

  #swap(a: number, b: number): void {
    const [one, other] = [this.#heads[a], this.#heads[b]];
    if (one === undefined || other === undefined) return;
    this.#heads[a] = other;
    this.#heads[b] = one;
  }
}
