/** Map pins: every prospect with coordinates that passes the filters, as little of each as a map needs. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { LoadedSegment } from "#shared/company-index/loaded-segment.ts";
import type { Matches, SegmentMatches } from "#shared/company-index/match.ts";
import { criteriaOf, type ProspectFilter } from "#shared/prospects/filter.ts";
import { atMoment } from "#shared/prospects/moment.ts";
import { PinText, pinEnd } from "#shared/prospects/pin-text.ts";
import { HexColor, Id, named } from "#shared/schema.ts";
import { DEFAULT_COLOR } from "#shared/statuses/schema.ts";
import type { World } from "#shared/world.ts";

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
export function mapPins(world: World, caller: Caller, filter: ProspectFilter): Promise<Iterable<string>> {
  return atMoment(world, caller.companyId, async ({ dictionary, find }) => {
    const matches = await find({ ...criteriaOf(filter, caller, dictionary), onMap: true });
    return pieces(matches, (statusId) => {
      const status = statusId === null ? undefined : dictionary.statuses.get(statusId);
      return JSON.stringify(status?.color ?? DEFAULT_COLOR);
    });
  });
}

/** `color` gives JSON. */
function* pieces({ segments, unflushed }: Matches, color: (statusId: number | null) => string): Generator<string> {
  let separator = "[";
  for (const matches of segments) {
    yield separator + segmentPins(matches.inView.segment, matches, color);
    separator = ",";
  }
  for (const { id, lat, lng, statusId } of unflushed) {
    yield `${separator}${pin(id, lat, lng, color(statusId))}`;
    separator = ",";
  }
  yield separator === "[" ? "[]" : "]";
}

function segmentPins(
  { main, geo }: LoadedSegment,
  { rows, count }: SegmentMatches,
  color: (statusId: number | null) => string,
): string {
  if (geo === undefined) throw new Error("the coordinates of a segment were not loaded");
  const { ids, statusId } = main;
  const ends = statusId.values.map((id) => pinEnd(color(id)));
  const text = new PinText(count, Math.max(...ends.map(({ length }) => length)));
  for (let row = 0; row < rows.length; row++) {
    const end = ends[statusId.codes[row] ?? 0];
    if (rows[row] === 1 && end !== undefined) text.add(ids[row] ?? 0, geo.lat[row] ?? 0, geo.lng[row] ?? 0, end);
  }
  return text.toString();
}

/** Numbers in a template are JSON, as long as they are finite; what is on the map is. */
const pin = (id: number, lat: number | null, lng: number | null, color: string): string =>
  `{"id":${id},"lat":${lat},"lng":${lng},"statusColor":${color}}`;
