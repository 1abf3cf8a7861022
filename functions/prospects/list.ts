/** GET /api/prospects: filtered, newest first, in pages with an exact total. */
import * as z from "zod/mini";
import { streamEndpoint } from "#shared/http/stream-endpoint.ts";
import { limits } from "#shared/limits.ts";
import { ListQuery, listProspects, ProspectPage } from "#shared/prospects/list.ts";
import { PageSize } from "#shared/schema.ts";

export const handler = streamEndpoint(
  {
    summary: "List prospects",
    description:
      "Filters combine with AND; values within one comma list with OR, compared without case. `total` is exact and a write is visible to the next read.",
    tag: "Prospects",
    allow: "everyone",
    query: z.extend(ListQuery, { pageSize: z._default(PageSize, limits.pageSizeDefault) }),
    status: 200,
    response: ProspectPage,
  },
  ({ world, caller, query }) => listProspects(world, caller, query),
);
