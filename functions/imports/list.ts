/** GET /api/prospects/imports: lists the imports of the company that the caller may see. */
import { endpoint } from "#shared/http/endpoint.ts";
import { listImports } from "#shared/jobs/import/requests.ts";
import { ImportPage, ImportQuery } from "#shared/jobs/import/schema.ts";

export const handler = endpoint(
  {
    summary: "List imports",
    description:
      "Newest first, without their errors. Admins and owners get all imports of the company, and other users get their own. `nextCursor` leads to the next page; it is null on the last one.",
    allow: "canManageProspects",
    scope: "prospects:import",
    query: ImportQuery,
    response: ImportPage,
  },
  ({ context, caller, query }) => listImports(context, caller, query),
);
