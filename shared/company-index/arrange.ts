/** Rows into segments: neighbours on the map together, so that a map's window meets few segments. */
import ngeohash from "ngeohash";
import type { IndexRow } from "#shared/company-index/row.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";

/** Rows of a segment: row numbers fit 16 bits, and its columns one item of the table. */
export const SEGMENT_ROWS = 4_096;
/** Characters of a segment's texts, all notes included. */
const SEGMENT_TEXT = 2_000_000;

const GEOHASH_BITS = 52;

/** Place along the geohash curve; what is not on the map comes first. */
export const curvePlace = ({ lat, lng }: IndexRow): number =>
  lat === null || lng === null ? -1 : ngeohash.encode_int(lat, lng, GEOHASH_BITS);

export const byPlace = (a: { place: number; id: number }, b: { place: number; id: number }): number =>
  a.place - b.place || a.id - b.id;

/** Rows in the order of the curve, cut into stretches that are one segment each. */
export function* cutIntoSegments(
  sorted: Iterable<RowWithNotes>,
  maxRows: number = SEGMENT_ROWS,
): Generator<RowWithNotes[]> {
  let segment: RowWithNotes[] = [];
  let length = 0;
  for (const entry of sorted) {
    if (segment.length === maxRows || (length > SEGMENT_TEXT && segment.length > 0)) {
      yield segment;
      segment = [];
      length = 0;
    }
    segment.push(entry);
    length += entry.row.text.length + entry.notes.reduce((sum, { text }) => sum + text.length, 0);
  }
  if (segment.length > 0) yield segment;
}

export const arranged = (entries: readonly RowWithNotes[]): RowWithNotes[] =>
  entries
    .map((entry) => ({ entry, place: curvePlace(entry.row), id: entry.row.id }))
    .sort(byPlace)
    .map(({ entry }) => entry);
