/**
 * Returns one page of matches, or all, in list order: the newest first, and the higher id first if the creation times are equal. With
 * `near`, the nearest come first, and the lower id first if the distances are equal. `matchesAfter` sorts by id.
 */
import { doubleAt } from "#shared/at.ts";
import type { LatLng } from "#shared/company-index/criteria.ts";
import { numbersTo } from "#shared/company-index/search/grouped.ts";
import type { Matches, SegmentMatches } from "#shared/company-index/search/match.ts";
import { latitudesWithin, metersBetween } from "#shared/geometry/distance.ts";

export interface ProspectRef {
  readonly id: number;
  /** The version in the index. If the prospect's row has another version, the index or the row is outdated. */
  readonly version: number;
  /** Milliseconds since 1970. Only `pageOf` sets it, and only for matches in list order. */
  readonly createdAt?: number;
  /** Only `pageOf` sets it, and only for matches that are sorted by distance. */
  readonly distanceMeters?: number;
}

export function pageOf(matches: Matches, offset: number, count: number): ProspectRef[] {
  const wanted = Math.min(offset + count, matches.total);
  if (offset >= wanted) return [];
  const first = new FirstRefs(wanted, matches.total);
  const { near } = matches;
  if (near !== undefined) return nearestFrom(first, matches, near, offset);
  // The newest parts mostly contain the newest rows. With them first, most rows of older parts are rejected at once.
  for (const segment of matches.segments.toReversed()) first.offerAll(segment);
  for (const { id, version, createdAt } of matches.unflushed) first.offer(createdAt, id, version);
  return first.from(offset).map(({ rank, id, version }) => ({ id, version, createdAt: rank }));
}

/** `FirstRefs` prefers high ranks and ids. Distances and ids are negated, so that the nearest match and the lowest id come first. */
function nearestFrom(first: FirstRefs, { segments, unflushed }: Matches, near: LatLng, offset: number): ProspectRef[] {
  for (const { inView, rows } of segments) {
    const { main, places } = inView.segment;
    let farthest = first.leastRank;
    let latitudes = latitudesWithin(-farthest);
    for (const row of rows) {
      const lat = doubleAt(places.lat, row);
      if (Math.abs(lat - near.lat) > latitudes) continue;
      const meters = metersBetween(near, lat, doubleAt(places.lng, row));
      first.offer(-meters, -doubleAt(main.ids, row), doubleAt(main.versions, row));
      if (first.leastRank === farthest) continue;
      farthest = first.leastRank;
      latitudes = latitudesWithin(-farthest);
    }
  }
  for (const { id, version, lat, lng } of unflushed) {
    if (lat !== null && lng !== null) first.offer(-metersBetween(near, lat, lng), -id, version);
  }
  return first.from(offset).map(({ rank, id, version }) => ({ id: -id, version, distanceMeters: 0 - rank }));
}

/** Returns the rows in list order if all rows of a sorted segment match. Otherwise returns them unchanged. */
function ordered({ inView, rows, inListOrder }: SegmentMatches): Pick<SegmentMatches, "rows" | "inListOrder"> {
  const { count, newest } = inView.segment;
  return newest !== undefined && rows.length === count ? { rows: newest, inListOrder: true } : { rows, inListOrder };
}

/** `FirstRefs` has room for twice the `wanted` rows and this number of further rows. When full, it discards all but the `wanted` rows. */
const SPARE = 512;

interface Ranked {
  readonly rank: number;
  readonly id: number;
  readonly version: number;
}

const byRank = (a: Ranked, b: Ranked): number => b.rank - a.rank || b.id - a.id;

/** Keeps the `wanted` rows with the highest ranks. In list order, the rank is the creation time. */
class FirstRefs {
  readonly #wanted: number;
  readonly #ranks: Float64Array;
  readonly #ids: Float64Array;
  readonly #versions: Float64Array;
  #size = 0;
  #least = Number.NEGATIVE_INFINITY;

  constructor(wanted: number, offered: number) {
    const room = Math.min(offered, 2 * wanted + SPARE);
    this.#wanted = wanted;
    this.#ranks = new Float64Array(room);
    this.#ids = new Float64Array(room);
    this.#versions = new Float64Array(room);
  }

  get leastRank(): number {
    return this.#least;
  }

  /** Offers the matches of a segment. If they are in list order, stops at the first one that is too old, and after `wanted` matches. */
  offerAll(matches: SegmentMatches): void {
    const { main, entry } = matches.inView.segment;
    const { ids, versions, createdAt } = main;
    let earliest = this.#least;
    if (entry.zone.createdAt[1] < earliest) return;
    const { rows, inListOrder } = ordered(matches);
    const end = inListOrder ? Math.min(rows.length, this.#wanted) : rows.length;
    for (const row of rows.subarray(0, end)) {
      const at = doubleAt(createdAt, row);
      if (at < earliest) {
        if (inListOrder) return;
        continue;
      }
      this.offer(at, doubleAt(ids, row), doubleAt(versions, row));
      earliest = this.#least;
    }
  }

  offer(rank: number, id: number, version: number): void {
    if (rank < this.#least) return;
    if (this.#size === this.#ranks.length) this.#keepWanted();
    this.#ranks[this.#size] = rank;
    this.#ids[this.#size] = id;
    this.#versions[this.#size] = version;
    this.#size++;
  }

  from(offset: number): Ranked[] {
    this.#keepWanted();
    this.#part(offset);
    const refs: Ranked[] = [];
    for (let at = offset; at < this.#size; at++) {
      refs.push({
        id: doubleAt(this.#ids, at),
        version: doubleAt(this.#versions, at),
        rank: doubleAt(this.#ranks, at),
      });
    }
    return refs.sort(byRank);
  }

  #keepWanted(): void {
    if (this.#size <= this.#wanted) return;
    this.#part(this.#wanted - 1);
    this.#size = this.#wanted;
    this.#least = doubleAt(this.#ranks, this.#wanted - 1);
  }

  /** Moves the rows with the highest ranks to the positions up to `nth`: quickselect with Hoare's partition scheme. */
  #part(nth: number): void {
    let low = 0;
    let high = this.#size - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const [rank, id] = [doubleAt(this.#ranks, middle), doubleAt(this.#ids, middle)];
      let left = low;
      let right = high;
      while (left <= right) {
        while (this.#order(left, rank, id) < 0) left++;
        while (this.#order(right, rank, id) > 0) right--;
        if (left <= right) this.#swap(left++, right--);
      }
      if (nth <= right) high = right;
      else if (nth >= left) low = left;
      else return;
    }
  }

  #order(at: number, rank: number, id: number): number {
    return rank - doubleAt(this.#ranks, at) || id - doubleAt(this.#ids, at);
  }

  #swap(a: number, b: number): void {
    for (const column of [this.#ranks, this.#ids, this.#versions]) {
      const kept = doubleAt(column, a);
      column[a] = doubleAt(column, b);
      column[b] = kept;
    }
  }
}

/** Returns the `count` lowest ids that are above `after` and at most `upTo`. */
export function matchesAfter(
  { segments, unflushed, total }: Matches,
  after: number,
  upTo: number,
  count: number,
): Pick<ProspectRef, "id" | "version">[] {
  const first = new FirstRefs(count, total);
  const offer = (id: number, version: number): void => {
    if (id > after && id <= upTo) first.offer(-id, id, version);
  };
  for (const { inView, rows } of segments) {
    const { ids, versions } = inView.segment.main;
    for (const row of rows) offer(doubleAt(ids, row), doubleAt(versions, row));
  }
  for (const { id, version } of unflushed) offer(id, version);
  return first.from(0).map(({ id, version }) => ({ id, version }));
}

/** Yields all matches in order. Sorts them in typed arrays, because there may be millions. */
export function* inOrder({ segments, unflushed, total, near }: Matches): Generator<ProspectRef, void, undefined> {
  const ids = new Float64Array(total);
  const versions = new Float64Array(total);
  const ranks = new Float64Array(total);
  let size = 0;
  const add = (id: number, version: number, rank: number): void => {
    ids[size] = id;
    versions[size] = version;
    ranks[size++] = rank;
  };
  for (const { inView, rows } of segments) {
    const { main } = inView.segment;
    const places = near === undefined ? undefined : inView.segment.places;
    const rankOf = (row: number): number =>
      near === undefined || places === undefined
        ? doubleAt(main.createdAt, row)
        : -metersBetween(near, doubleAt(places.lat, row), doubleAt(places.lng, row));
    for (const row of rows) add(doubleAt(main.ids, row), doubleAt(main.versions, row), rankOf(row));
  }
  for (const { id, version, createdAt, lat, lng } of unflushed) {
    const isByDistance = near !== undefined && lat !== null && lng !== null;
    add(id, version, isByDistance ? -metersBetween(near, lat, lng) : createdAt);
  }
  const later = near === undefined ? 1 : -1;
  const order = numbersTo(size).sort(
    (a, b) => doubleAt(ranks, b) - doubleAt(ranks, a) || later * (doubleAt(ids, b) - doubleAt(ids, a)),
  );
  for (const at of order) yield { id: doubleAt(ids, at), version: doubleAt(versions, at) };
}
