/** GET /api/prospects/imports: the imports of the company. */
import { endpoint } from "#shared/http/endpoint.ts";
import { listImports } from "#shared/imports/list.ts";
import { ImportPage, ImportQuery } from "#shared/imports/schema.ts";

export const handler = endpoint(
  {
    summary: "List imports",
    description: "Newest first, without their errors. `nextCursor` leads to the next part until it is null.",
    tag: "Prospects",
    allow: "canManageProspects",
    query: ImportQuery,
    status: 200,
    response: ImportPage,
  },
  ({ world, caller, query }) => listImports(world, caller.companyId, query),
);
