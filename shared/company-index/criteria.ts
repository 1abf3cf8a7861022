/**
 * Filter criteria for reads of a company's search index, and zone maps. The index stores its rows in segments of up to 4 096 rows. A zone
 * map summarises the values of one segment, so that a read can skip segments in which no row can match.
 */
import * as z from "zod/mini";
import type { IndexRow } from "#shared/company-index/record.ts";

/**
 * Maximum number of different values that a zone map lists for a column. If a segment has more values, the list is null, and every read
 * must assume that the segment contains any value.
 */
const MAX_SET = 24;

const ValueSet = z.nullable(z.array(z.nullable(z.int())));

export const Zone = z.object({
  /** The smallest box that contains all rows with coordinates: minLng, minLat, maxLng, maxLat. Null if no row has coordinates. */
  box: z.nullable(z.tuple([z.number(), z.number(), z.number(), z.number()])),
  /** The earliest and the latest creation time of the rows, in milliseconds since 1970. */
  createdAt: z.tuple([z.number(), z.number()]),
  ids: z.tuple([z.number(), z.number()]),
  /** All status ids of the rows. Null if there are too many. The segment may then contain any status. */
  statusIds: ValueSet,
  assigneeIds: ValueSet,
});
export type Zone = z.infer<typeof Zone>;
export type Box = readonly [minLng: number, minLat: number, maxLng: number, maxLat: number];

/** The area that a segment or a geohash cell covers. `box` is null for a segment without coordinates. */
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

/** Returns true if the box may contain a row of the area. If minLng is greater than maxLng, the box crosses the 180th meridian. */
export function meetsBox({ box }: Covered, [minLng, minLat, maxLng, maxLat]: Box): boolean {
  if (box === null) return false;
  const [west, south, east, north] = box;
  if (south > maxLat || north < minLat) return false;
  return minLng <= maxLng ? west <= maxLng && east >= minLng : east >= minLng || west <= maxLng;
}

/** Returns true if the box contains all rows of the area that have coordinates. */
export function withinBox({ box }: Covered, [minLng, minLat, maxLng, maxLat]: Box): boolean {
  if (box === null) return false;
  const [west, south, east, north] = box;
  if (south < minLat || north > maxLat) return false;
  return minLng <= maxLng ? west >= minLng && east <= maxLng : west >= minLng || east <= maxLng;
}

export const meetsSet = (zone: readonly (number | null)[] | null, wanted: ReadonlySet<number | null>): boolean =>
  zone === null || zone.some((value) => wanted.has(value));

/**
 * Returns true if the stored zone map `map` covers `zone`, which was computed from the rows of the segment. If it does not, reads skip the
 * segment although rows match.
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
 * One word of a search. A prospect matches if one of its texts or notes contains `text`, or if one of its phone numbers contains `digits`.
 * If `digits` is empty, phone numbers do not match.
 */
export interface SearchWord {
  /** The word in case-folded form. It is not empty and contains no space. */
  readonly text: string;
  readonly digits: string;
}

/** A stretch of geohashes that an area covers. */
export interface AreaRange {
  readonly from: number;
  readonly to: number;
  /** True if the whole range is known to be inside the area. Points of other ranges may be outside. */
  readonly isInside: boolean;
}

/** An area on the map: the inside of a polygon or of a circle. */
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
 * The filters of a request. They include the limits of what its caller may see. A row must pass every filter. An undefined filter passes
 * every row.
 */
export interface Criteria {
  /** The edges belong to the box. The box crosses the 180th meridian if minLng is greater than maxLng. */
  readonly box?: Box | undefined;
  /** The first and the last creation time that pass, in milliseconds since 1970. */
  readonly createdFrom?: number | undefined;
  readonly createdTo?: number | undefined;
  /** The first time of the last change that passes, in milliseconds since 1970. */
  readonly updatedFrom?: number | undefined;
  readonly statusIds?: ReadonlySet<number | null> | undefined;
  readonly assigneeIds?: ReadonlySet<number | null> | undefined;
  readonly tagIds?: ReadonlySet<number> | undefined;
  /** City names in trimmed and case-folded form. */
  readonly cities?: ReadonlySet<string> | undefined;
  /** A row must be inside each of these areas. */
  readonly areas?: readonly Area[] | undefined;
  /** The nearest rows come first. Use it together with `onMap`. */
  readonly near?: LatLng | undefined;
  /** If true, the coordinates of all matches are loaded. Rows without coordinates pass too. */
  readonly located?: boolean | undefined;
  /** If true, only rows with both coordinates pass. */
  readonly onMap?: boolean | undefined;
  readonly words: readonly SearchWord[];
}

/**
 * Returns false if the zone map proves that no row of the segment passes the criteria. The search words are ignored, because a zone map
 * does not describe texts.
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

/** Returns true if the point is in the box or on its edge. A point without a coordinate has NaN and is in no box. */
export function insideBox([minLng, minLat, maxLng, maxLat]: Box, lat: number, lng: number): boolean {
  if (!(lat >= minLat && lat <= maxLat)) return false;
  return minLng <= maxLng ? lng >= minLng && lng <= maxLng : lng >= minLng || lng <= maxLng;
}

const hasPlace = ({ box, areas = [], onMap }: Criteria): boolean =>
  box !== undefined || areas.length > 0 || onMap === true;

/** Returns true if the criteria need the columns of coordinates and of times of changes, which are stored together. */
export const needsGeo = (criteria: Criteria): boolean =>
  hasPlace(criteria) || criteria.located === true || criteria.updatedFrom !== undefined;

/** The index was written by release 0.1.0, which stores no times of changes. A rebuild of the index adds them. */
export class UpdateTimesMissing extends Error {
  override name = "UpdateTimesMissing";
}

/** Returns true if the row was changed at the time `from` or later. Throws UpdateTimesMissing if this is unknown. */
export function isUpdated(updatedAt: number | undefined, from: number): boolean {
  if (updatedAt === undefined || Number.isNaN(updatedAt)) throw new UpdateTimesMissing();
  return updatedAt >= from;
}

function isInPlace(criteria: Criteria, { lat, lng }: IndexRow): boolean {
  if (!hasPlace(criteria)) return true;
  if (lat === null || lng === null) return false;
  const { box, areas = [] } = criteria;
  return (box === undefined || insideBox(box, lat, lng)) && areas.every((area) => area.contains(lat, lng));
}

/** Returns true if the row passes all criteria. `hasWord(i)` must return true if a note of the row contains the word with index i. */
export function passes(criteria: Criteria, row: IndexRow, hasWord: (word: number) => boolean): boolean {
  const { createdFrom, createdTo, updatedFrom, statusIds, assigneeIds, tagIds, cities, words } = criteria;
  if (!isInPlace(criteria, row)) return false;
  if (createdFrom !== undefined && row.createdAt < createdFrom) return false;
  if (createdTo !== undefined && row.createdAt > createdTo) return false;
  if (statusIds !== undefined && !statusIds.has(row.statusId)) return false;
  if (assigneeIds !== undefined && !assigneeIds.has(row.assignedToUserId)) return false;
  if (tagIds !== undefined && !row.tagIds.some((id) => tagIds.has(id))) return false;
  if (cities !== undefined && (row.city === null || !cities.has(row.city))) return false;
  if (updatedFrom !== undefined && !isUpdated(row.updatedAt, updatedFrom)) return false;
  return words.every(
    ({ text, digits }, i) =>
      row.text.includes(text) || (digits !== "" && row.phoneDigits.includes(digits)) || hasWord(i),
  );
}
