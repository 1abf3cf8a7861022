/** Finds all prospects that pass the criteria, in the segments and unflushed entries of a company index. */
import { doubleAt, uint16At } from "#shared/at.ts";
import { type Criteria, canMeet, type LatLng, passes, withinBox } from "#shared/company-index/criteria.ts";
import { valueAt } from "#shared/company-index/encoding.ts";
import { type GeohashRange, geohashRanges } from "#shared/company-index/geohash.ts";
import type { IndexRow } from "#shared/company-index/record.ts";
import {
  type IndexView,
  type LoadedSegment,
  liveRows,
  type PostedColumn,
  type SegmentInView,
} from "#shared/company-index/search/loaded-segment.ts";
import {
  AreaFilter,
  allRows,
  BboxFilter,
  codedFilter,
  keepRows,
  noRows,
  type RowFilter,
  type Wanted,
} from "#shared/company-index/search/row-filter.ts";
import { buildSomeWords, type FoundWords, findWords } from "#shared/company-index/search/text-search.ts";
import { requireTime } from "#shared/deadline.ts";

export interface SegmentMatches {
  readonly inView: SegmentInView;
  /** Row numbers. Several segments may share the array, so callers must not change it. */
  readonly rows: Uint16Array;
  /** If true, the newest rows come first. Otherwise, the order is unspecified. */
  readonly inListOrder: boolean;
}

export interface Matches {
  readonly segments: readonly SegmentMatches[];
  readonly unflushed: readonly IndexRow[];
  readonly total: number;
  /** Number of rows whose coordinates were compared with the bounding box, for benchmarks. */
  readonly looked: number;
  /** The point of the criteria. If it is set, pages begin with the nearest matches. Otherwise, pages are in list order. */
  readonly near?: LatLng | undefined;
}

/**
 * The view must contain the needed columns of every segment whose zone map allows a match. If the criteria contain words, it must contain
 * all segments. Also sorts some segments, and builds some word indexes, so that later reads are faster.
 */
export function findMatches(view: IndexView, criteria: Criteria): Matches {
  if (criteria.words.length > 0) buildSomeWords(view);
  sortSome(view);
  const words = findWords(view, criteria);
  const search = new Search(criteria, words);
  const segments: SegmentMatches[] = [];
  let total = 0;
  for (const [i, inView] of view.segments.entries()) {
    if (!canMeet(inView.segment.entry.zone, criteria)) continue;
    requireTime();
    const matches = search.matchesIn(inView, i);
    if (matches.rows.length > 0) segments.push(matches);
    total += matches.rows.length;
  }
  const unflushed: IndexRow[] = [];
  for (const row of liveRows(view.delta)) {
    if (passes(criteria, row, (word) => words.unflushed[word]?.has(row.id) === true)) unflushed.push(row);
  }
  return { segments, unflushed, total: total + unflushed.length, looked: search.looked, near: criteria.near };
}

/** One read sorts about this number of rows. Later reads of a page then examine only a few matches of each sorted segment. */
const SORTED_AT_ONCE = 100_000;

function sortSome({ segments }: IndexView): void {
  let rows = 0;
  for (const { segment } of segments) {
    const { unsortedRows } = segment;
    if (unsortedRows === 0 || rows >= SORTED_AT_ONCE) continue;
    segment.sortForLists();
    rows += unsortedRows;
  }
}

class Search {
  readonly #criteria: Criteria;
  readonly #words: FoundWords;
  #ranges: readonly GeohashRange[] | undefined;
  #looked = 0;

  constructor(criteria: Criteria, words: FoundWords) {
    this.#criteria = criteria;
    this.#words = words;
  }

  get looked(): number {
    return this.#looked;
  }

  /** Finds the matches in a segment. Applies the filter with the smallest `size` first. `at` is the position of the segment in the view. */
  matchesIn(inView: SegmentInView, at: number): SegmentMatches {
    const { segment, dead } = inView;
    const bbox = this.#bboxFilterIn(segment);
    const filters = codedFilters(segment, this.#criteria);
    for (const rows of this.#words.searches) filters.push(rows[at] ?? noRows);
    if (bbox !== undefined) filters.push(bbox);
    for (const area of this.#criteria.areas ?? []) filters.push(new AreaFilter(segment.places, area));
    if (filters.length > 1) filters.sort((a, b) => a.size - b.size);
    const [narrowest, ...others] = filters;
    let rows = narrowest?.rows() ?? allRows(segment.count);
    if (dead !== undefined) rows = keepRows(rows, (row) => dead[row] === 0);
    for (const filter of others) rows = keepRows(rows, (row) => filter.has(row));
    rows = keepCreated(rows, segment, this.#criteria);
    if (this.#criteria.box !== undefined) this.#looked += bbox?.compared ?? rows.length;
    if (bbox === undefined) rows = keepOnMap(rows, segment, this.#criteria);
    rows = keepUpdated(rows, segment, this.#criteria);
    rows = keepSources(rows, segment, this.#criteria);
    segment.isRead = true;
    return { inView, rows, inListOrder: narrowest?.inListOrder === true };
  }

  #bboxFilterIn(segment: LoadedSegment): BboxFilter | undefined {
    const { box } = this.#criteria;
    if (box === undefined || withinBox(segment.entry.zone, box)) return undefined;
    this.#ranges ??= geohashRanges(box);
    return new BboxFilter(segment.places, box, this.#ranges);
  }
}

/** Returns the filters by status, assignee, tag and city. Omits a filter that every row of the segment passes. */
function codedFilters(segment: LoadedSegment, criteria: Criteria): RowFilter[] {
  const filters: RowFilter[] = [];
  const add = (column: PostedColumn, wanted: ReadonlySet<Wanted> | undefined): void => {
    if (wanted === undefined) return;
    const filter = codedFilter(segment.main[column], segment.postings(column), wanted);
    if (filter !== undefined) filters.push(filter);
  };
  add("statusId", criteria.statusIds);
  add("assignedToUserId", criteria.assigneeIds);
  add("tagIds", criteria.tagIds);
  add("city", criteria.cities);
  return filters;
}

function keepCreated(rows: Uint16Array, { main, entry }: LoadedSegment, criteria: Criteria): Uint16Array {
  const { createdFrom: from = Number.NEGATIVE_INFINITY, createdTo: to = Number.POSITIVE_INFINITY } = criteria;
  const [first, last] = entry.zone.createdAt;
  if (first >= from && last <= to) return rows;
  return keepRows(rows, (row) => {
    const createdAt = doubleAt(main.createdAt, row);
    return createdAt >= from && createdAt <= to;
  });
}

function keepOnMap(rows: Uint16Array, segment: LoadedSegment, { box, onMap }: Criteria): Uint16Array {
  if (box === undefined && onMap !== true) return rows;
  const { lat, lng } = segment.places;
  return keepRows(rows, (row) => !(Number.isNaN(lat[row]) || Number.isNaN(lng[row])));
}

function keepUpdated(rows: Uint16Array, segment: LoadedSegment, { updatedFrom }: Criteria): Uint16Array {
  if (updatedFrom === undefined) return rows;
  return keepRows(rows, (row) => segment.updatedAt(row) >= updatedFrom);
}

function keepSources(rows: Uint16Array, segment: LoadedSegment, { sourceIds }: Criteria): Uint16Array {
  if (sourceIds === undefined) return rows;
  const { values, codes } = segment.texts.sourceId;
  const wanted = new Set(values.flatMap((value, code) => (value !== null && sourceIds.has(value) ? [code] : [])));
  return wanted.size === 0 ? rows.subarray(0, 0) : keepRows(rows, (row) => wanted.has(uint16At(codes, row)));
}

export function appointmentsOf({ segments, unflushed }: Matches): number {
  let total = unflushed.reduce((sum, { appointments }) => sum + appointments, 0);
  for (const { inView, rows } of segments) {
    const column = inView.segment.main.appointments;
    for (const row of rows) total += valueAt(column, row).appointments;
  }
  return total;
}

/** Returns the assignee of each prospect in `ids` that is not deleted. `matches` must be the result of criteria without filters. */
export function assigneesOf({ segments, unflushed }: Matches, ids: Iterable<number>): Map<number, number | null> {
  const wanted = new Set(ids);
  const found = new Map<number, number | null>();
  for (const { id, assignedToUserId } of unflushed) if (wanted.has(id)) found.set(id, assignedToUserId);
  for (const { inView } of segments) {
    const column = inView.segment.main.assignedToUserId;
    for (const id of wanted) {
      const row = inView.segment.rowOf(id);
      if (row >= 0 && inView.dead?.[row] !== 1) found.set(id, valueAt(column, row));
    }
  }
  return found;
}
