/** Map pins: every prospect with coordinates that passes the filters, as little of each as a map needs. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { Matches, SegmentMatches } from "#shared/company-index/match.ts";
import type { IndexRow } from "#shared/company-index/row.ts";
import type { ApiContext } from "#shared/context.ts";
import { criteriaOf, type ProspectFilter, searching } from "#shared/prospects/filter.ts";
import { findProspects } from "#shared/prospects/find.ts";
import { PinText, pinEnd } from "#shared/prospects/list/pin-text.ts";
import { DEFAULT_COLOR } from "#shared/reference/status-schema.ts";
import { HexColor, Id, named } from "#shared/schema.ts";

export const MapPin = named(
  "MapPin",
  z.object({ id: Id, lat: z.number(), lng: z.number(), statusColor: HexColor }),
  "A prospect on the map. Without a status its colour is `#9CA3AF`.",
);
export type MapPin = z.infer<typeof MapPin>;

/**
 * A JSON array of pins as text, in pieces of some thousands, in no particular order. The text is put together here, for at a
 * million pins every microsecond of one is a second of the request.
 */
export async function mapPins(
  context: ApiContext,
  caller: Caller,
  filter: ProspectFilter,
): Promise<Iterable<Uint8Array | string>> {
  const { names, matches } = await findProspects(
    context,
    caller.companyId,
    (dictionary) => ({ ...criteriaOf(filter, caller, dictionary), onMap: true }),
    searching(filter),
  );
  return pinPieces(matches, (statusId) => {
    const status = statusId === null ? undefined : names.statuses.get(statusId);
    return pinEnd(JSON.stringify(status?.color ?? DEFAULT_COLOR));
  });
}

/** What follows the coordinates of a pin with this status. */
type EndOf = (statusId: number | null) => Buffer;

/** Unflushed rows of one piece: as many as a segment has. A company may have more of them than a call takes arguments. */
const PIECE_ROWS = 4_096;

export function* pinPieces(
  { segments, unflushed }: Pick<Matches, "segments" | "unflushed">,
  endOf: EndOf,
): Generator<Uint8Array | string> {
  let opening: "[" | "," = "[";
  for (const matches of segments) {
    yield segmentPins(opening, matches, endOf);
    opening = ",";
  }
  for (let first = 0; first < unflushed.length; first += PIECE_ROWS) {
    yield unflushedPins(opening, unflushed.slice(first, first + PIECE_ROWS), endOf);
    opening = ",";
  }
  yield segments.length + unflushed.length === 0 ? "[]" : "]";
}

function segmentPins(
  opening: "[" | ",",
  { inView, rows: found, inListOrder }: SegmentMatches,
  endOf: EndOf,
): Uint8Array {
  const { main, geo } = inView.segment;
  if (geo === undefined) throw new Error("the coordinates of a segment were not loaded");
  const { ids, statusId } = main;
  // Neighbours on the map, one after the other, are smaller once they are compressed.
  const rows = inListOrder ? found.toSorted() : found;
  const ends = statusId.values.map(endOf);
  const text = new PinText(opening, rows.length, longest(ends));
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] ?? 0;
    const end = ends[statusId.codes[row] ?? 0];
    if (end !== undefined) text.add(ids[row] ?? 0, geo.lat[row] ?? 0, geo.lng[row] ?? 0, end);
  }
  return text.finish();
}

function unflushedPins(opening: "[" | ",", rows: readonly IndexRow[], endOf: EndOf): Uint8Array {
  const ends = rows.map(({ statusId }) => endOf(statusId));
  const text = new PinText(opening, rows.length, longest(ends));
  for (const [i, { id, lat, lng }] of rows.entries()) {
    const end = ends[i];
    if (lat !== null && lng !== null && end !== undefined) text.add(id, lat, lng, end);
  }
  return text.finish();
}

const longest = (ends: readonly Buffer[]): number => Math.max(...ends.map(({ length }) => length));
