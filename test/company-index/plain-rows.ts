/** Makes rows and segments of a search index, for tests that need only some of the fields. */
import { zoneOf } from "#shared/company-index/criteria.ts";
import type { IndexRow } from "#shared/company-index/record.ts";
import { LoadedSegment, SegmentTexts } from "#shared/company-index/search/loaded-segment.ts";
import { columnsOf, encodeSegment, type RowWithNotes } from "#shared/company-index/segment.ts";

export const plainRow = (fields: Partial<IndexRow> & Pick<IndexRow, "id">): IndexRow => ({
  ...{ version: 1, createdAt: 0, updatedAt: 0, statusId: null, assignedToUserId: null, tagIds: [], city: null },
  ...{ lat: null, lng: null, text: "", sourceId: null, appointments: 0, ahead: [], phoneDigits: "\n" },
  ...fields,
});

export function segmentOf(entries: readonly RowWithNotes[]): LoadedSegment {
  const { main, geo, text } = columnsOf("segment", encodeSegment(entries));
  const zone = zoneOf(entries.map(({ row }) => row));
  const entry = { id: "segment", rows: entries.length, counts: { main: 1, geo: 1, text: 1 }, zone };
  const segment = new LoadedSegment(entry, main);
  segment.geo = geo;
  segment.text = new SegmentTexts(text);
  return segment;
}
