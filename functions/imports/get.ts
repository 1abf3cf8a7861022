/** GET /api/prospects/imports/{id}: what became of an import. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { readImport } from "#shared/imports/read.ts";
import { Import } from "#shared/imports/schema.ts";
import { limits } from "#shared/limits.ts";
import { openLinks } from "#shared/links.ts";

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
  ({ world, caller, path }) => readImport(world, links, caller, path.id),
);
