/** GET /api/prospects/imports/{id}: returns the progress and the result of an import. */
import { openLinks } from "#shared/aws/links.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { readImport } from "#shared/jobs/import/requests.ts";
import { Import } from "#shared/jobs/import/schema.ts";
import * as limits from "#shared/limits.ts";

const links = openLinks();

export const handler = endpoint(
  {
    summary: "Get an import",
    description: `Its progress and result, for the user who began it, and for admins and owners. \`errors\` holds all errors of an import by \`POST /api/prospects/import\`, and the first ${limits.jobErrors} of an import by upload; if there are more, \`errorReport\` links to a CSV file of all errors. While the import waits for its file, \`upload\` is the link to send it to; only the user who began the import gets it.`,
    allow: "canManageProspects",
    scope: "prospects:import",
    path: IdPath,
    response: Import,
  },
  ({ context, caller, path }) => readImport(context, links, caller, path.id),
);
