/** The filters of reads of a company index, and the zone maps that let a read skip segments. */
import * as z from "zod/mini";
import type { IndexRow } from "#shared/company-index/record.ts";

/** Maximum number of values of a column in a zone map. If there are more, the list is null and the segment may contain any value. */
const MAX_SET = 24;

const ValueSet = z.nullable(z.array(z.nullable(z.int())));

export const Zone = z.object({
  /** The smallest box that contains all rows with coordinates: minLng, minLat, maxLng, maxLat. Null if no row has coordinates. */
  box: z.nullable(z.tuple([z.number(), z.number(), z.number(), z.number()])),
  /** Milliseconds since 1970. */
  createdAt: z.tuple([z.number(), z.number()]),
  ids: z.tuple([z.number(), z.number()]),
  statusIds: ValueSet,
  assigneeIds: ValueSet,
});
export type Zone = z.infer<typeof Zone>;
/** A box that a caller chooses crosses the 180th meridian if minLng is greater than maxLng. */
export type Box = readonly [minLng: number, minLat: number, maxLng: number, maxLat: number];

interface Covered {
  readonly box: Box | null;
}

/** `rows` must contain at least one row. */
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

export function meetsBox({ box }: Covered, [minLng, minLat, maxLng, maxLat]: Box): boolean {
  if (box === null) return false;
  const [west, south, east, north] = box;
  if (south > maxLat || north < minLat) return false;
  return minLng <= maxLng ? west <= maxLng && east >= minLng : east >= minLng || west <= maxLng;
}

export function withinBox({ box }: Covered, [minLng, minLat, maxLng, maxLat]: Box): boolean {
  if (box === null) return false;
  const [west, south, east, north] = box;
  if (south < minLat || north > maxLat) return false;
  return minLng <= maxLng ? west >= minLng && east <= maxLng : west >= minLng || east <= maxLng;
}

const meetsSet = (zone: readonly (number | null)[] | null, wanted: ReadonlySet<number | null>): boolean =>
  zone === null || zone.some((value) => wanted.has(value));

/** Returns false if the stored zone map `map` lacks a value of `zone`, computed from the rows. Reads may then skip rows that match. */
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

/** A searched word. A prospect matches it if its text or a note contains `text`, or if its `phoneDigits` contain one of `digits`. */
export interface SearchWord {
  /** In the form that the function `searchable` returns. It is not empty and contains no space. */
  readonly text: string;
  readonly digits: readonly string[];
}

/** Omits a word if every prospect that matches another word also matches this word. A search takes time for each word. */
export function withoutImplied(words: readonly SearchWord[]): SearchWord[] {
  const kept: SearchWord[] = [];
  for (const word of words.toSorted((a, b) => b.text.length - a.text.length)) {
    if (!kept.some((other) => implies(other, word))) kept.push(word);
  }
  return kept;
}

const implies = (word: SearchWord, other: SearchWord): boolean =>
  word.text.includes(other.text) &&
  word.digits.every((number) => other.digits.some((digits) => number.includes(digits)));

/** The coordinates of the rows of a segment, in degrees. A missing coordinate is NaN. */
export interface Places {
  readonly lat: Float64Array;
  readonly lng: Float64Array;
}

export interface Area {
  /** Null if the area is empty. */
  readonly box: Box | null;
  contains(lat: number, lng: number): boolean;
  /** Returns a bit for each row of a segment: the lowest bit of the first number is row 0. It is faster than `contains` for each row. */
  readonly rowsInside?: (places: Places) => Uint32Array;
}

export interface LatLng {
  readonly lat: number;
  readonly lng: number;
}

/** The filters of a request, and what the caller may see. A row must pass every filter. An undefined filter passes every row. */
export interface Criteria {
  /** The edges are part of the box. */
  readonly box?: Box | undefined;
  /** Milliseconds since 1970. `createdFrom` and `createdTo` are included in the range. */
  readonly createdFrom?: number | undefined;
  readonly createdTo?: number | undefined;
  /** A row passes if its last change was at this time or later, in milliseconds since 1970. */
  readonly updatedFrom?: number | undefined;
  readonly statusIds?: ReadonlySet<number | null> | undefined;
  readonly assigneeIds?: ReadonlySet<number | null> | undefined;
  readonly tagIds?: ReadonlySet<number> | undefined;
  /** City names in the form that the function `folded` returns. */
  readonly cities?: ReadonlySet<string> | undefined;
  /** Contains each source id that passes, in upper and lower case as it is stored. */
  readonly sourceIds?: Pick<ReadonlySet<string>, "has"> | undefined;
  readonly areas?: readonly Area[] | undefined;
  /** If set, rows are sorted by their distance from this point. Set `onMap` too, because rows without coordinates have no distance. */
  readonly near?: LatLng | undefined;
  /** If true, the coordinates of all matches are loaded, even if no filter needs them. Rows without coordinates still pass. */
  readonly located?: boolean | undefined;
  /** If true, only rows with both coordinates pass. */
  readonly onMap?: boolean | undefined;
  readonly words: readonly SearchWord[];
}

/** Returns false if no row can pass. Ignores words, tags, cities, source ids and `updatedFrom`, which a zone map does not describe. */
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

/** A missing coordinate is NaN, so the point is in no box. */
export function insideBox([minLng, minLat, maxLng, maxLat]: Box, lat: number, lng: number): boolean {
  if (!(lat >= minLat && lat <= maxLat)) return false;
  return minLng <= maxLng ? lng >= minLng && lng <= maxLng : lng >= minLng || lng <= maxLng;
}

const hasPlace = ({ box, areas = [], onMap }: Criteria): boolean =>
  box !== undefined || areas.length > 0 || onMap === true;

/** Returns true if the criteria need the `geo` columns: the coordinates and the times of changes. */
export const needsGeo = (criteria: Criteria): boolean =>
  hasPlace(criteria) || criteria.located === true || criteria.updatedFrom !== undefined;

/** Returns true if the criteria need the `text` columns: the searchable texts and the source ids. */
export const needsText = ({ words, sourceIds }: Criteria): boolean => words.length > 0 || sourceIds !== undefined;

function isInPlace(criteria: Criteria, { lat, lng }: IndexRow): boolean {
  if (!hasPlace(criteria)) return true;
  if (lat === null || lng === null) return false;
  const { box, areas = [] } = criteria;
  return (box === undefined || insideBox(box, lat, lng)) && areas.every((area) => area.contains(lat, lng));
}

/** `hasWord(i)` must return true if a note of the row's prospect contains the word with index i. */
export function passes(criteria: Criteria, row: IndexRow, hasWord: (word: number) => boolean): boolean {
  const { createdFrom, createdTo, updatedFrom, statusIds, assigneeIds, tagIds, cities, sourceIds, words } = criteria;
  if (!isInPlace(criteria, row)) return false;
  if (createdFrom !== undefined && row.createdAt < createdFrom) return false;
  if (createdTo !== undefined && row.createdAt > createdTo) return false;
  if (statusIds !== undefined && !statusIds.has(row.statusId)) return false;
  if (assigneeIds !== undefined && !assigneeIds.has(row.assignedToUserId)) return false;
  if (tagIds !== undefined && !row.tagIds.some((id) => tagIds.has(id))) return false;
  if (cities !== undefined && (row.city === null || !cities.has(row.city))) return false;
  if (updatedFrom !== undefined && row.updatedAt < updatedFrom) return false;
  if (sourceIds !== undefined && (row.sourceId === null || !sourceIds.has(row.sourceId))) return false;
  return words.every(
    ({ text, digits }, i) =>
      row.text.includes(text) || digits.some((number) => row.phoneDigits.includes(number)) || hasWord(i),
  );
}
