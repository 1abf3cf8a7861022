/** POST /api/prospects/exports: starts an export job, because one response with very many prospects would take too long. */
import { openJobQueues } from "#shared/aws/sqs.ts";
import { command } from "#shared/http/endpoint.ts";
import { beginExport } from "#shared/jobs/export/requests.ts";
import { Export, NewExport } from "#shared/jobs/export/schema.ts";
import * as limits from "#shared/limits.ts";

const queue = openJobQueues();

export const handler = command(
  {
    summary: "Begin an export",
    description: `Writes the same file as \`GET /api/prospects/export\`, but to the bucket and for any number of prospects. The body itself has the filters of the list, as texts: \`{"status":"New"}\`. Check the names of the filters and \`total\` of the export: the service ignores an unknown field, also a field \`filter\`, and the file then has more prospects. \`GET /api/prospects/exports/{id}\` shows the progress, and the download link when the file is ready. The file is kept for ${limits.exportKeptDays} days.`,
    allow: "everyone",
    scope: "prospects:export",
    body: NewExport,
    status: 201,
    response: Export,
  },
  ({ context, caller, body }) => beginExport(context, queue, caller, body),
);
