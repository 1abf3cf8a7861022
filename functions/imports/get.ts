/** GET /api/prospects/imports/{id}: what became of an import. */

import { openLinks } from "#shared/aws/links.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { readImport } from "#shared/jobs/import/read.ts";
import { Import } from "#shared/jobs/import/schema.ts";
import { limits } from "#shared/limits.ts";

const links = openLinks();

export const handler = endpoint(
  {
    summary: "Get an import",
    description: `How far it is and what came of it. \`errors\` holds all errors of an import by \`POST /api/prospects/import\`, and the first ${limits.jobErrors} of an import by an upload; where there are more, \`errorReport\` leads to a CSV file of all. While it waits for its file, \`upload\` is a link to send it to, shown to the user who began it and to nobody else.`,
    tag: "Prospects",
    allow: "canManageProspects",
    path: IdPath,
    status: 200,
    response: Import,
  },
  ({ context, caller, path }) => readImport(context, links, caller, path.id),
);
