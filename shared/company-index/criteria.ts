/** The criteria of a read of the index. Zone maps summarise the values of a segment, so that a read can skip segments without matches. */
import * as z from "zod/mini";
import type { IndexRow } from "#shared/company-index/record.ts";

/** Most values that a set of a zone map stores. If a segment has more, no set is stored, and the segment may hold any value. */
const MAX_SET = 24;

const ValueSet = z.nullable(z.array(z.nullable(z.int())));

export const Zone = z.object({
  /** minLng, minLat, maxLng and maxLat of all rows with coordinates; null if no row has any. */
  box: z.nullable(z.tuple([z.number(), z.number(), z.number(), z.number()])),
  /** First and last creation time, in milliseconds since the epoch. */
  createdAt: z.tuple([z.number(), z.number()]),
  ids: z.tuple([z.number(), z.number()]),
  /** The set of all status ids in the segment. Null means that the segment may hold any value. */
  statusIds: ValueSet,
  assigneeIds: ValueSet,
});
export type Zone = z.infer<typeof Zone>;
export type Box = readonly [minLng: number, minLat: number, maxLng: number, maxLat: number];

/** A segment or a geohash cell. `box` is null if no row of the segment has coordinates. */
interface Area {
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

/** Whether a row of the area can be in the box. The box crosses the antimeridian if minLng is greater than maxLng. */
export function meetsBox({ box }: Area, [minLng, minLat, maxLng, maxLat]: Box): boolean {
  if (box === null) return false;
  const [west, south, east, north] = box;
  if (south > maxLat || north < minLat) return false;
  return minLng <= maxLng ? west <= maxLng && east >= minLng : east >= minLng || west <= maxLng;
}

/** Whether the box contains all rows of the area that have coordinates. */
export function withinBox({ box }: Area, [minLng, minLat, maxLng, maxLat]: Box): boolean {
  if (box === null) return false;
  const [west, south, east, north] = box;
  if (south < minLat || north > maxLat) return false;
  return minLng <= maxLng ? west >= minLng && east <= maxLng : west >= minLng || east <= maxLng;
}

export const meetsSet = (zone: readonly (number | null)[] | null, wanted: ReadonlySet<number | null>): boolean =>
  zone === null || zone.some((value) => wanted.has(value));

/** Whether `map` describes every row that `zone` describes. */
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

/** A word of a search: a text of the prospect or of a note contains `text`, or a phone number contains `digits` (unless empty). */
export interface SearchWord {
  /** The word is case-folded, contains no blank and is never empty. */
  readonly text: string;
  readonly digits: string;
}

/**
 * The filters of a request, combined with the visibility of its caller. A row must pass all of them; an undefined filter passes every row.
 */
export interface Criteria {
  /** The box includes its edges. It crosses the antimeridian if minLng is greater than maxLng. */
  readonly box?: Box | undefined;
  /** Milliseconds since the epoch. Both bounds are inclusive. */
  readonly createdFrom?: number | undefined;
  readonly createdTo?: number | undefined;
  readonly statusIds?: ReadonlySet<number | null> | undefined;
  readonly assigneeIds?: ReadonlySet<number | null> | undefined;
  /** A row passes if it has at least one of these tags. */
  readonly tagIds?: ReadonlySet<number> | undefined;
  /** City names, trimmed and case-folded. */
  readonly cities?: ReadonlySet<string> | undefined;
  /** If true, only rows with both coordinates pass. */
  readonly onMap?: boolean | undefined;
  /** A row must match every word. */
  readonly words: readonly SearchWord[];
}

/** Whether a row of a segment with this zone map can pass. Ignores the words, because a zone map does not describe texts. */
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

/** Whether the point is in the box. A point on an edge is inside. */
export function insideBox([minLng, minLat, maxLng, maxLat]: Box, lat: number, lng: number): boolean {
  if (lat < minLat || lat > maxLat) return false;
  return minLng <= maxLng ? lng >= minLng && lng <= maxLng : lng >= minLng || lng <= maxLng;
}

/** Whether the row passes. `hasWord(i)` returns whether a note of the row contains word number i of the criteria. */
export function passes(criteria: Criteria, row: IndexRow, hasWord: (word: number) => boolean): boolean {
  const { box, createdFrom, createdTo, statusIds, assigneeIds, tagIds, cities, onMap, words } = criteria;
  if (box !== undefined || onMap === true) {
    if (row.lat === null || row.lng === null) return false;
    if (box !== undefined && !insideBox(box, row.lat, row.lng)) return false;
  }
  if (createdFrom !== undefined && row.createdAt < createdFrom) return false;
  if (createdTo !== undefined && row.createdAt > createdTo) return false;
  if (statusIds !== undefined && !statusIds.has(row.statusId)) return false;
  if (assigneeIds !== undefined && !assigneeIds.has(row.assignedToUserId)) return false;
  if (tagIds !== undefined && !row.tagIds.some((id) => tagIds.has(id))) return false;
  if (cities !== undefined && (row.city === null || !cities.has(row.city))) return false;
  return words.every(
    ({ text, digits }, i) =>
      row.text.includes(text) || (digits !== "" && row.phoneDigits.includes(digits)) || hasWord(i),
  );
}
