/** POST /api/prospects/imports/{id}/cancel: an import that is not over comes to nothing. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { cancelImport } from "#shared/jobs/import/cancel.ts";
import { ImportSummary } from "#shared/jobs/import/schema.ts";

export const handler = endpoint(
  {
    summary: "Cancel an import",
    description:
      "Nothing of the file will be there. What was written already is removed within minutes; nobody has seen it. An import that is completed or has failed is 409, one that is cancelled stays so. An import by `POST /api/prospects/import` cannot be cancelled: 409.",
    tag: "Prospects",
    allow: "canManageProspects",
    path: IdPath,
    status: 200,
    response: ImportSummary,
  },
  ({ context, caller, path }) => cancelImport(context, caller.companyId, path.id),
);
