/** GET /api/prospects: filtered, newest first, in pages with an exact total. */
import { streamEndpoint } from "#shared/http/stream-endpoint.ts";
import { ListQuery, listProspects, ProspectPage } from "#shared/prospects/list/list.ts";

export const handler = streamEndpoint(
  {
    summary: "List prospects",
    description:
      "Filters combine with AND; values within one comma list with OR, compared without case. `total` is exact and a write is visible to the next read.",
    tag: "Prospects",
    allow: "everyone",
    query: ListQuery,
    status: 200,
    response: ProspectPage,
  },
  ({ context, caller, query }) => listProspects(context, caller, query),
);
