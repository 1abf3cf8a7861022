/** GET /api/prospects/pins: streams the map pins of all prospects that match the filters. */
import * as z from "zod/mini";
import { streamText } from "#shared/http/streaming.ts";
import { ProspectFilter, paging } from "#shared/prospects/filter.ts";
import { MapPin, mapPins } from "#shared/prospects/list/pins.ts";

export const handler = streamText(
  {
    summary: "List map pins",
    description:
      "Accepts the filters of the list, and ignores `page` and `pageSize`. Streams every match that has both coordinates, in no particular order, gzipped if the client accepts it. If an error occurs while streaming, the connection breaks, so a client never gets a complete array with missing pins.",
    allow: "everyone",
    scope: "prospects:read",
    query: ProspectFilter,
    ignoredQuery: paging,
    revalidated: true,
    response: z.array(MapPin),
  },
  ({ context, caller, query, validator }) => mapPins(context, caller, query, validator),
);
