/**
 * Filter criteria for reads of a company's search index, and zone maps. The index stores its rows in segments of up to 4 096 rows. A zone
 * map summarises the values of one segment, so that a read can skip segments in which no row can match.
 */
import * as z from "zod/mini";
import type { IndexRow } from "#shared/company-index/record.ts";

/**
 * Maximum number of distinct values that a zone map lists for a column. If a segment has more values, the list is null. Every read must
 * then assume that the segment may contain any value.
 */
const MAX_SET = 24;

const ValueSet = z.nullable(z.array(z.nullable(z.int())));

export const Zone = z.object({
  /** The smallest box that contains all rows with coordinates: minLng, minLat, maxLng, maxLat. Null if no row has coordinates. */
  box: z.nullable(z.tuple([z.number(), z.number(), z.number(), z.number()])),
  /** The earliest and the latest creation time of the rows, in milliseconds since 1970. */
  createdAt: z.tuple([z.number(), z.number()]),
  ids: z.tuple([z.number(), z.number()]),
  /** All status ids of the rows. Null if there are more than MAX_SET, and the segment may then contain any status. */
  statusIds: ValueSet,
  assigneeIds: ValueSet,
});
export type Zone = z.infer<typeof Zone>;
export type Box = readonly [minLng: number, minLat: number, maxLng: number, maxLat: number];

/** The box around the rows of a segment, or the box of a geohash cell. `box` is null for a segment in which no row has coordinates. */
interface Covered {
  readonly box: Box | null;
}

/** Builds the zone map of a segment. `rows` must contain at least one row. */
export function zoneOf(rows: readonly IndexRow[]): Zone {
  const lats: number[] = [];
  const lngs: number[] = [];
  for (const { lat, lng } of rows) {
    if (lat === null || lng === null) continue;
    lats.push(lat);
    lngs.push(lng);
  }
  const onMap = lats.length > 0;
  return {
    box: onMap ? [Math.min(...lngs), Math.min(...lats), Math.max(...lngs), Math.max(...lats)] : null,
    createdAt: range(rows.map(({ createdAt }) => createdAt)),
    ids: range(rows.map(({ id }) => id)),
    statusIds: smallSet(rows.map(({ statusId }) => statusId)),
    assigneeIds: smallSet(rows.map(({ assignedToUserId }) => assignedToUserId)),
  };
}

const range = (values: readonly number[]): [number, number] => [Math.min(...values), Math.max(...values)];

function smallSet(values: readonly (number | null)[]): (number | null)[] | null {
  const distinct = new Set(values);
  return distinct.size > MAX_SET ? null : [...distinct];
}

/** Returns true if the two boxes overlap. The second box crosses the 180th meridian if its minLng is greater than its maxLng. */
export function meetsBox({ box }: Covered, [minLng, minLat, maxLng, maxLat]: Box): boolean {
  if (box === null) return false;
  const [west, south, east, north] = box;
  if (south > maxLat || north < minLat) return false;
  return minLng <= maxLng ? west <= maxLng && east >= minLng : east >= minLng || west <= maxLng;
}

/**
 * Returns true if the first box is completely inside the second box. The second box crosses the 180th meridian if its minLng is greater
 * than its maxLng.
 */
export function withinBox({ box }: Covered, [minLng, minLat, maxLng, maxLat]: Box): boolean {
  if (box === null) return false;
  const [west, south, east, north] = box;
  if (south < minLat || north > maxLat) return false;
  return minLng <= maxLng ? west >= minLng && east <= maxLng : west >= minLng || east <= maxLng;
}

const meetsSet = (zone: readonly (number | null)[] | null, wanted: ReadonlySet<number | null>): boolean =>
  zone === null || zone.some((value) => wanted.has(value));

/**
 * Returns true if the stored zone map `map` includes all values of `zone`, which was computed from the segment's rows. If it does not,
 * reads could skip the segment although it has matching rows.
 */
export function coversZone(map: Zone, zone: Zone): boolean {
  return (
    (zone.box === null || (map.box !== null && withinBox(zone, map.box))) &&
    coversRange(map.createdAt, zone.createdAt) &&
    coversRange(map.ids, zone.ids) &&
    coversSet(map.statusIds, zone.statusIds) &&
    coversSet(map.assigneeIds, zone.assigneeIds)
  );
}

const coversRange = (map: readonly [number, number], [first, last]: readonly [number, number]): boolean =>
  map[0] <= first && map[1] >= last;

const coversSet = (map: readonly (number | null)[] | null, values: readonly (number | null)[] | null): boolean =>
  map === null || values?.every((value) => map.includes(value)) === true;

/**
 * One word of a search. A prospect matches if a searchable field or a note contains `text`, or if a phone number contains `digits`. If
 * `digits` is empty, phone numbers are not compared.
 */
export interface SearchWord {
  /** The word in case-folded form. It is not empty and contains no space. */
  readonly text: string;
  readonly digits: string;
}

/** A range of geohashes that covers a part of an area. `from` is included, and `to` is not. */
export interface AreaRange {
  readonly from: number;
  readonly to: number;
  /** True if all points of the range are inside the area. If false, some points may be outside. */
  readonly isInside: boolean;
}

/** An area on the map: the inside of a polygon, a circle or a box. */
export interface Area {
  /** A box that contains the area. Null if the area is empty. */
  readonly box: Box | null;
  /** Sorted ranges that cover the area. */
  readonly ranges: readonly AreaRange[];
  contains(lat: number, lng: number): boolean;
}

export interface LatLng {
  readonly lat: number;
  readonly lng: number;
}

/**
 * The filters of a request. They also restrict the result to what the caller may see. A row must pass every filter, and an undefined filter
 * passes every row.
 */
export interface Criteria {
  /** The edges are part of the box. The box crosses the 180th meridian if minLng is greater than maxLng. */
  readonly box?: Box | undefined;
  /** The earliest and the latest creation time that pass, in milliseconds since 1970. */
  readonly createdFrom?: number | undefined;
  readonly createdTo?: number | undefined;
  /** A row passes if its last change was at this time or later, in milliseconds since 1970. */
  readonly updatedFrom?: number | undefined;
  readonly statusIds?: ReadonlySet<number | null> | undefined;
  readonly assigneeIds?: ReadonlySet<number | null> | undefined;
  readonly tagIds?: ReadonlySet<number> | undefined;
  /** City names in trimmed and case-folded form. */
  readonly cities?: ReadonlySet<string> | undefined;
  /** Areas on the map. A row must be inside each of them. */
  readonly areas?: readonly Area[] | undefined;
  /** If set, rows are sorted by their distance from this point. Set `onMap` too, because rows without coordinates have no distance. */
  readonly near?: LatLng | undefined;
  /** If true, the coordinates of all matches are loaded into memory. Rows without coordinates still pass. */
  readonly located?: boolean | undefined;
  /** If true, only rows with both coordinates pass. */
  readonly onMap?: boolean | undefined;
  readonly words: readonly SearchWord[];
}

/**
 * Returns false if the zone map proves that no row of the segment passes the criteria. Search words, tags, cities and `updatedFrom` are not
 * considered, because a zone map does not describe them.
 */
export function canMeet(zone: Zone, criteria: Criteria): boolean {
  const { box, areas = [], onMap, createdFrom, createdTo, statusIds, assigneeIds } = criteria;
  const [first, last] = zone.createdAt;
  return (
    (box === undefined || meetsBox(zone, box)) &&
    areas.every((area) => area.box !== null && meetsBox(zone, area.box)) &&
    (onMap !== true || zone.box !== null) &&
    (createdFrom === undefined || last >= createdFrom) &&
    (createdTo === undefined || first <= createdTo) &&
    (statusIds === undefined || meetsSet(zone.statusIds, statusIds)) &&
    (assigneeIds === undefined || meetsSet(zone.assigneeIds, assigneeIds))
  );
}

/** Returns true if the point is in the box or on its edge. A missing coordinate is NaN, so the point is in no box. */
export function insideBox([minLng, minLat, maxLng, maxLat]: Box, lat: number, lng: number): boolean {
  if (!(lat >= minLat && lat <= maxLat)) return false;
  return minLng <= maxLng ? lng >= minLng && lng <= maxLng : lng >= minLng || lng <= maxLng;
}

const hasPlace = ({ box, areas = [], onMap }: Criteria): boolean =>
  box !== undefined || areas.length > 0 || onMap === true;

/** Returns true if the criteria need the `geo` columns: the coordinates and the times of changes. */
export const needsGeo = (criteria: Criteria): boolean =>
  hasPlace(criteria) || criteria.located === true || criteria.updatedFrom !== undefined;

function isInPlace(criteria: Criteria, { lat, lng }: IndexRow): boolean {
  if (!hasPlace(criteria)) return true;
  if (lat === null || lng === null) return false;
  const { box, areas = [] } = criteria;
  return (box === undefined || insideBox(box, lat, lng)) && areas.every((area) => area.contains(lat, lng));
}

/**
 * Returns true if the row passes all criteria. `hasWord(i)` must return true if a note of the row's prospect contains the word with index
 * i.
 */
export function passes(criteria: Criteria, row: IndexRow, hasWord: (word: number) => boolean): boolean {
  const { createdFrom, createdTo, updatedFrom, statusIds, assigneeIds, tagIds, cities, words } = criteria;
  if (!isInPlace(criteria, row)) return false;
  if (createdFrom !== undefined && row.createdAt < createdFrom) return false;
  if (createdTo !== undefined && row.createdAt > createdTo) return false;
  if (statusIds !== undefined && !statusIds.has(row.statusId)) return false;
  if (assigneeIds !== undefined && !assigneeIds.has(row.assignedToUserId)) return false;
  if (tagIds !== undefined && !row.tagIds.some((id) => tagIds.has(id))) return false;
  if (cities !== undefined && (row.city === null || !cities.has(row.city))) return false;
  if (updatedFrom !== undefined && row.updatedAt < updatedFrom) return false;
  return words.every(
    ({ text, digits }, i) =>
      row.text.includes(text) || (digits !== "" && row.phoneDigits.includes(digits)) || hasWord(i),
  );
}
