/** GET /api/prospects/pins: all prospects on the map, filtered as the list is. */
import * as z from "zod/mini";
import { streamText } from "#shared/http/stream-endpoint.ts";
import { ProspectFilter } from "#shared/prospects/filter.ts";
import { MapPin, mapPins } from "#shared/prospects/list/pins.ts";

export const handler = streamText(
  {
    summary: "List map pins",
    description:
      "Takes the filters of the list and no paging: every match that has both coordinates, in no particular order, streamed, gzipped when accepted. An answer that ends early is a broken connection, never a shorter array.",
    tag: "Prospects",
    allow: "everyone",
    query: ProspectFilter,
    status: 200,
    response: z.array(MapPin),
  },
  ({ context, caller, query }) => mapPins(context, caller, query),
);
