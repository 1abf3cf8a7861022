/** GET /api/prospects/exports/{id}: returns the progress of an export, and the link to its file after the end. */
import { openLinks } from "#shared/aws/links.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { readExport } from "#shared/jobs/export/requests.ts";
import { Export } from "#shared/jobs/export/schema.ts";

const links = openLinks();

export const handler = endpoint(
  {
    summary: "Get an export",
    description:
      "For the user who began it, and for admins and owners. A user who may see fewer prospects now than at the beginning gets 404. The file at `file.url` is served with `Content-Encoding: gzip`: browsers, `fetch` and `curl --compressed` decompress it.",
    allow: "everyone",
    scope: "prospects:export",
    path: IdPath,
    response: Export,
  },
  ({ context, caller, path }) => readExport(context, links, caller, path.id),
);
