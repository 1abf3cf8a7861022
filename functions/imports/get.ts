/** GET /api/prospects/imports/{id}: what became of an import. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { readImport } from "#shared/imports/read.ts";
import { Import } from "#shared/imports/schema.ts";

export const handler = endpoint(
  {
    summary: "Get an import",
    tag: "Prospects",
    allow: "canManageProspects",
    path: IdPath,
    status: 200,
    response: Import,
  },
  ({ world, caller, path }) => readImport(world, caller.companyId, path.id),
);
