/** Finds what a read wants: of each segment the rows that pass, and the unflushed prospects that do. */
import type { Coded } from "#shared/company-index/columns.ts";
import { type Criteria, passes } from "#shared/company-index/criteria.ts";
import type { LoadedSegment, PostedColumn } from "#shared/company-index/loaded-segment.ts";
import { codedFilter } from "#shared/company-index/postings.ts";
import type { IndexRow } from "#shared/company-index/row.ts";
import { allRows, keepRows, noRows, type RowFilter } from "#shared/company-index/row-filter.ts";
import { findWord, makeSomeWords } from "#shared/company-index/text-search.ts";
import { type IndexView, liveRows, type SegmentInView } from "#shared/company-index/view.ts";
import { type Box, meetsBox, meetsSet, withinBox, type Zone } from "#shared/company-index/zone.ts";

export interface SegmentMatches {
  readonly inView: SegmentInView;
  /** Numbers of the rows that pass, in no order. Not to be changed. */
  readonly rows: Uint16Array;
}

export interface Matches {
  /** Only segments with at least one. */
  readonly segments: readonly SegmentMatches[];
  /** In no order. */
  readonly unflushed: readonly IndexRow[];
  /** Exact. */
  readonly total: number;
}

/** Whether any row of such a segment can pass; words are not looked at. */
export function canMeet(zone: Zone, criteria: Criteria): boolean {
  const { box, onMap, createdFrom, createdTo, statusIds, assigneeIds } = criteria;
  const [first, last] = zone.createdAt;
  return (
    (box === undefined || meetsBox(zone, box)) &&
    (onMap !== true || zone.box !== null) &&
    (createdFrom === undefined || last >= createdFrom) &&
    (createdTo === undefined || first <= createdTo) &&
    (statusIds === undefined || meetsSet(zone.statusIds, statusIds)) &&
    (assigneeIds === undefined || meetsSet(zone.assigneeIds, assigneeIds))
  );
}

/** Every segment that can meet the criteria must be in the view with the columns they look at; with words, every segment. */
export function findMatches(view: IndexView, criteria: Criteria): Matches {
  if (criteria.words.length > 0) makeSomeWords(view);
  const words = criteria.words.map((word) => findWord(view, word));
  const segments: SegmentMatches[] = [];
  let total = 0;
  for (const [i, inView] of view.segments.entries()) {
    if (!canMeet(inView.segment.entry.zone, criteria)) continue;
    const hits = words.map(({ rows }) => rows[i] ?? noRows);
    const rows = passingRows(inView, criteria, hits);
    if (rows.length > 0) segments.push({ inView, rows });
    total += rows.length;
  }
  const unflushed: IndexRow[] = [];
  for (const row of liveRows(view.delta)) {
    if (passes(criteria, row, (word) => words[word]?.unflushed.has(row.id) === true)) unflushed.push(row);
  }
  return { segments, unflushed, total: total + unflushed.length };
}

/** Begins with the filter that lets the fewest rows pass, so that the others look at no more than these. */
function passingRows({ segment, dead }: SegmentInView, criteria: Criteria, hits: readonly RowFilter[]): Uint16Array {
  const filters = [...codedFilters(segment, criteria), ...hits].sort((a, b) => a.size - b.size);
  const [narrowest, ...others] = filters;
  let rows = narrowest?.rows() ?? allRows(segment.count);
  if (dead !== undefined) rows = keepRows(rows, (row) => dead[row] === 0);
  for (const filter of others) rows = keepRows(rows, (row) => filter.has(row));
  rows = keepCreated(rows, segment, criteria);
  return keepPlaced(rows, segment, criteria);
}

/** Those that do not hold for the whole segment. */
function codedFilters(segment: LoadedSegment, criteria: Criteria): RowFilter[] {
  const { statusIds, assigneeIds, tagIds, cities } = criteria;
  const { statusId, assignedToUserId, tagIds: tagIdsOf, city } = segment.main;
  const filters: (RowFilter | undefined)[] = [];
  const add = <T>(name: PostedColumn, column: Coded<T>, isWanted: (value: T) => boolean): void => {
    filters.push(codedFilter(column, () => segment.postings(name), isWanted));
  };
  if (statusIds !== undefined) add("statusId", statusId, (id) => statusIds.has(id));
  if (assigneeIds !== undefined) add("assignedToUserId", assignedToUserId, (id) => assigneeIds.has(id));
  if (tagIds !== undefined) add("tagIds", tagIdsOf, (ids) => ids.some((id) => tagIds.has(id)));
  if (cities !== undefined) add("city", city, (name) => name !== null && cities.has(name));
  return filters.filter((filter) => filter !== undefined);
}

function keepCreated(rows: Uint16Array, { main, entry }: LoadedSegment, criteria: Criteria): Uint16Array {
  const { createdFrom: from = Number.NEGATIVE_INFINITY, createdTo: to = Number.POSITIVE_INFINITY } = criteria;
  const [first, last] = entry.zone.createdAt;
  if (first >= from && last <= to) return rows;
  return keepRows(rows, (row) => {
    const createdAt = main.createdAt[row] ?? 0;
    return createdAt >= from && createdAt <= to;
  });
}

const WORLD: Box = [-180, -90, 180, 90];

/** NaN fails each comparison: what has no coordinate is in no box. */
function keepPlaced(rows: Uint16Array, { geo, entry }: LoadedSegment, { box, onMap }: Criteria): Uint16Array {
  if (box === undefined && onMap !== true) return rows;
  if (geo === undefined) throw new Error("the coordinates of a segment were not loaded");
  const { lat: lats, lng: lngs } = geo;
  const [minLng, minLat, maxLng, maxLat] = box ?? WORLD;
  const crosses = minLng > maxLng;
  if (withinBox(entry.zone, box ?? WORLD)) {
    return keepRows(rows, (row) => !(Number.isNaN(lats[row]) || Number.isNaN(lngs[row])));
  }
  return keepRows(rows, (row) => {
    const lat = lats[row] ?? Number.NaN;
    const lng = lngs[row] ?? Number.NaN;
    if (!(lat >= minLat && lat <= maxLat)) return false;
    return crosses ? lng >= minLng || lng <= maxLng : lng >= minLng && lng <= maxLng;
  });
}
