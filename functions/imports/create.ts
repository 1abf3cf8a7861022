/** POST /api/prospects/imports: a link to upload a file to, which is then imported. */

import { openLinks } from "#shared/aws/links.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { beginImport } from "#shared/jobs/import/begin.ts";
import { NewImport } from "#shared/jobs/import/new-import.ts";
import { Import } from "#shared/jobs/import/schema.ts";
import { limits } from "#shared/limits.ts";

const links = openLinks();

export const handler = endpoint(
  {
    summary: "Begin an import",
    description: `For files of up to ${limits.jobRows} rows and ${limits.jobBytes} bytes, of the form that \`POST /api/prospects/import\` takes. Send the file to \`upload\`, with its method and exactly its headers, before \`upload.expiresAt\`: the link takes one file, once. The import then begins by itself; \`GET /api/prospects/imports/{id}\` tells how far it is. The whole file is checked before anything is written, and all prospects appear at the same moment. With \`bytes\` or \`sha256\` the bucket itself refuses any other file. A dry run checks the file, tells what would become of it, and makes nothing.`,
    tag: "Prospects",
    allow: "canManageProspects",
    body: NewImport,
    status: 201,
    response: Import,
  },
  ({ context, caller, body }) => beginImport(context, links, caller, body),
);
