/** GET /api/prospects/exports/{id}: how far an export is, and the link to its file. */

import { openLinks } from "#shared/aws/links.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { readExport } from "#shared/jobs/export/read.ts";
import { Export } from "#shared/jobs/export/schema.ts";

const links = openLinks();

export const handler = endpoint(
  {
    summary: "Get an export",
    description:
      "For its maker, and for admins and owners. A maker who sees less of the company now than then gets 404. The file behind `file.url` is gzipped, and says so (`Content-Encoding`): browsers, `fetch` and `curl --compressed` save it as it is meant.",
    tag: "Prospects",
    allow: "everyone",
    path: IdPath,
    status: 200,
    response: Export,
  },
  ({ context, caller, path }) => readExport(context, links, caller, path.id),
);
