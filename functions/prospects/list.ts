/** GET /api/prospects: lists the prospects that match the filters, newest first, in pages with an exact total. */
import { streamEndpoint } from "#shared/http/streaming.ts";
import { ListQuery, listProspects, ProspectPage } from "#shared/prospects/list/list.ts";

export const handler = streamEndpoint(
  {
    summary: "List prospects",
    description:
      "Different filters combine with AND. The values of one comma-separated list combine with OR. Comparisons ignore case. `total` is exact, and every write is visible to the next read.",
    allow: "everyone",
    scope: "prospects:read",
    query: ListQuery,
    revalidated: true,
    response: ProspectPage,
  },
  ({ context, caller, query, validator }) => listProspects(context, caller, query, validator),
);
