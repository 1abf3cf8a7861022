/** POST /api/prospects/imports/{id}/cancel: cancels an import that has not ended. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { cancelImport } from "#shared/jobs/import/requests.ts";
import { ImportSummary } from "#shared/jobs/import/schema.ts";

export const handler = command(
  {
    summary: "Cancel an import",
    description:
      "For the user who began it, and for admins and owners. No row of the file becomes visible; rows that are already written are removed within minutes. Cancelling a cancelled import again changes nothing. 409 if the import is completed, has failed, or was made by `POST /api/prospects/import`.",
    allow: "canManageProspects",
    scope: "prospects:import",
    path: IdPath,
    response: ImportSummary,
  },
  ({ context, caller, path }) => cancelImport(context, caller, path.id),
);
