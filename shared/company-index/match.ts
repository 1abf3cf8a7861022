/** Finds what a read wants: of each segment the rows that pass, and the unflushed prospects that do. */
import type { Coded } from "#shared/company-index/columns.ts";
import { type Criteria, passes } from "#shared/company-index/criteria.ts";
import type { IndexRow } from "#shared/company-index/row.ts";
import { findWord } from "#shared/company-index/text-search.ts";
import { type IndexView, liveRows, type SegmentInView } from "#shared/company-index/view.ts";
import { type Box, meetsBox, meetsSet, withinBox, type Zone } from "#shared/company-index/zone.ts";

export interface SegmentMatches {
  readonly inView: SegmentInView;
  /** 1 for each row that passes. */
  readonly rows: Uint8Array;
  readonly count: number;
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
  const words = criteria.words.map((word) => findWord(view, word));
  const segments: SegmentMatches[] = [];
  for (const [i, inView] of view.segments.entries()) {
    if (!canMeet(inView.segment.entry.zone, criteria)) continue;
    const rows = passingRows(inView, criteria);
    for (const { rows: hits } of words) keepOnly(rows, hits[i]);
    const count = countOf(rows);
    if (count > 0) segments.push({ inView, rows, count });
  }
  const unflushed: IndexRow[] = [];
  for (const row of liveRows(view.delta)) {
    if (passes(criteria, row, (word) => words[word]?.unflushed.has(row.id) === true)) unflushed.push(row);
  }
  return { segments, unflushed, total: segments.reduce((sum, { count }) => sum + count, unflushed.length) };
}

/** All filters but the words. One pass over one column for each filter that does not hold for the whole segment. */
function passingRows({ segment, dead }: SegmentInView, criteria: Criteria): Uint8Array {
  const { statusIds, assigneeIds, tagIds, cities, box, createdFrom, createdTo, onMap } = criteria;
  const { main } = segment;
  const rows = new Uint8Array(main.count);
  for (let row = 0; row < rows.length; row++) rows[row] = 1 - (dead[row] ?? 0);
  if (statusIds !== undefined) keepCoded(rows, main.statusId, (id) => statusIds.has(id));
  if (assigneeIds !== undefined) keepCoded(rows, main.assignedToUserId, (id) => assigneeIds.has(id));
  if (tagIds !== undefined) keepCoded(rows, main.tagIds, (ids) => ids.some((id) => tagIds.has(id)));
  if (cities !== undefined) keepCoded(rows, main.city, (city) => city !== null && cities.has(city));
  if (createdFrom !== undefined || createdTo !== undefined) keepCreated(rows, segment, createdFrom, createdTo);
  if (box !== undefined || onMap === true) keepPlaced(rows, segment, box);
  return rows;
}

/** The values are judged once; then a row costs one look-up. */
function keepCoded<T>(rows: Uint8Array, { values, codes }: Coded<T>, isWanted: (value: T) => boolean): void {
  const wanted = Uint8Array.from(values, (value) => (isWanted(value) ? 1 : 0));
  if (wanted.every((one) => one === 1)) return;
  for (let row = 0; row < rows.length; row++) rows[row] = (rows[row] ?? 0) & (wanted[codes[row] ?? 0] ?? 0);
}

function keepCreated(
  rows: Uint8Array,
  { main, entry }: SegmentInView["segment"],
  from = Number.NEGATIVE_INFINITY,
  to = Number.POSITIVE_INFINITY,
): void {
  const [first, last] = entry.zone.createdAt;
  if (first >= from && last <= to) return;
  for (let row = 0; row < rows.length; row++) {
    const createdAt = main.createdAt[row] ?? 0;
    if (createdAt < from || createdAt > to) rows[row] = 0;
  }
}

const WORLD: Box = [-180, -90, 180, 90];

/** NaN fails each comparison: what has no coordinate is in no box. */
function keepPlaced(rows: Uint8Array, { geo, entry }: SegmentInView["segment"], box: Box = WORLD): void {
  if (geo === undefined) throw new Error("the coordinates of a segment were not loaded");
  const [minLng, minLat, maxLng, maxLat] = box;
  const crosses = minLng > maxLng;
  const wholeBox = withinBox(entry.zone, box);
  for (let row = 0; row < rows.length; row++) {
    const lat = geo.lat[row] ?? Number.NaN;
    const lng = geo.lng[row] ?? Number.NaN;
    const inside = wholeBox
      ? !(Number.isNaN(lat) || Number.isNaN(lng))
      : lat >= minLat && lat <= maxLat && (crosses ? lng >= minLng || lng <= maxLng : lng >= minLng && lng <= maxLng);
    if (!inside) rows[row] = 0;
  }
}

function keepOnly(rows: Uint8Array, hits: Uint8Array | undefined): void {
  for (let row = 0; row < rows.length; row++) rows[row] = (rows[row] ?? 0) & (hits?.[row] ?? 0);
}

function countOf(rows: Uint8Array): number {
  let count = 0;
  for (let row = 0; row < rows.length; row++) count += rows[row] ?? 0;
  return count;
}
