/** Zone maps: what a segment's rows can be, so that a read passes over segments that hold nothing for it. */
import * as z from "zod/mini";
import type { IndexRow } from "#shared/company-index/row.ts";

/** Sets of more values than this are not written down: any value may be there. */
const MAX_SET = 24;

const ValueSet = z.nullable(z.array(z.nullable(z.int())));

export const Zone = z.object({
  /** minLng, minLat, maxLng, maxLat of the rows that are on the map; null where none is. */
  box: z.nullable(z.tuple([z.number(), z.number(), z.number(), z.number()])),
  /** First and last creation, in milliseconds since the epoch. */
  createdAt: z.tuple([z.number(), z.number()]),
  ids: z.tuple([z.number(), z.number()]),
  /** Null: any. */
  statusIds: ValueSet,
  assigneeIds: ValueSet,
});
export type Zone = z.infer<typeof Zone>;
export type Box = readonly [minLng: number, minLat: number, maxLng: number, maxLat: number];

/** Of at least one row. */
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

/** Whether any row can lie in the box; one whose west lies east of its east crosses the antimeridian. */
export function meetsBox({ box }: Zone, [minLng, minLat, maxLng, maxLat]: Box): boolean {
  if (box === null) return false;
  const [west, south, east, north] = box;
  if (south > maxLat || north < minLat) return false;
  return minLng <= maxLng ? west <= maxLng && east >= minLng : east >= minLng || west <= maxLng;
}

/** Whether all rows with coordinates lie in the box. */
export function withinBox({ box }: Zone, [minLng, minLat, maxLng, maxLat]: Box): boolean {
  if (box === null) return false;
  const [west, south, east, north] = box;
  if (south < minLat || north > maxLat) return false;
  return minLng <= maxLng ? west >= minLng && east <= maxLng : west >= minLng || east <= maxLng;
}

export const meetsSet = (zone: readonly (number | null)[] | null, wanted: ReadonlySet<number | null>): boolean =>
  zone === null || zone.some((value) => wanted.has(value));

/** Whether every row that `zone` describes is within `map`. */
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
