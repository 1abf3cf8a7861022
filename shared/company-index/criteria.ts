/** What a read wants: the filters of a request and the visibility of its caller, as sets of ids and ranges. All must hold. */
import type { IndexRow } from "#shared/company-index/row.ts";
import { type Box, meetsBox, meetsSet, type Zone } from "#shared/company-index/zone.ts";

/** Some text must contain `text`, or a phone's digits contain `digits` (where it is not empty). */
export interface SearchWord {
  /** Without case. Not empty, and without a blank: what holds one is two words. */
  readonly text: string;
  readonly digits: string;
}

/** Undefined: any. */
export interface Criteria {
  /** Edges inside; west may lie east of east. */
  readonly box?: Box | undefined;
  /** Milliseconds since the epoch, both inclusive. */
  readonly createdFrom?: number | undefined;
  readonly createdTo?: number | undefined;
  readonly statusIds?: ReadonlySet<number | null> | undefined;
  readonly assigneeIds?: ReadonlySet<number | null> | undefined;
  /** One of these tags. */
  readonly tagIds?: ReadonlySet<number> | undefined;
  /** Folded. */
  readonly cities?: ReadonlySet<string> | undefined;
  /** Only what has both coordinates. */
  readonly onMap?: boolean | undefined;
  /** Each word must be found. */
  readonly words: readonly SearchWord[];
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

/** Edges are inside. */
export function insideBox([minLng, minLat, maxLng, maxLat]: Box, lat: number, lng: number): boolean {
  if (lat < minLat || lat > maxLat) return false;
  return minLng <= maxLng ? lng >= minLng && lng <= maxLng : lng >= minLng || lng <= maxLng;
}

/** `hasWord(i)` says whether the criteria's word number i is found in a note of the row. */
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
