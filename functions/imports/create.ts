/** POST /api/prospects/imports: creates an import job and returns a presigned URL for the upload of the CSV file. */
import { openLinks } from "#shared/aws/links.ts";
import { command } from "#shared/http/endpoint.ts";
import { beginImport, NewImport } from "#shared/jobs/import/requests.ts";
import { Import } from "#shared/jobs/import/schema.ts";
import * as limits from "#shared/limits.ts";

const links = openLinks();

export const handler = command(
  {
    summary: "Begin an import",
    description: `For files of up to ${limits.jobRows} rows and ${limits.jobBytes} bytes, in the format of \`POST /api/prospects/import\`. Send the file to \`upload\` with its method and exactly its headers before \`upload.expiresAt\`. The link accepts one upload. The import then starts automatically, and \`GET /api/prospects/imports/{id}\` shows its progress. It checks the whole file before it writes anything. Updates (with \`onMatch=update\`) are visible immediately, and all created prospects become visible together at the end. With \`bytes\` or \`sha256\`, the bucket refuses any other file. A dry run checks the file, reports the result and writes nothing.`,
    allow: "canManageProspects",
    scope: "prospects:import",
    body: NewImport,
    status: 201,
    response: Import,
  },
  ({ context, caller, body }) => beginImport(context, links, caller, body),
);
