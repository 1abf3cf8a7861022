/** POST /api/prospects/exports: starts an export job that writes a file. It is for companies too large for a streamed answer. */
import { openJobQueues } from "#shared/aws/sqs.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { beginExport } from "#shared/jobs/export/requests.ts";
import { Export, NewExport } from "#shared/jobs/export/schema.ts";
import * as limits from "#shared/limits.ts";

const queue = openJobQueues();

export const handler = endpoint(
  {
    summary: "Begin an export",
    description: `Writes the file that \`GET /api/prospects/export\` streams into the bucket, at any size. The body holds the filters of the list, as texts. \`GET /api/prospects/exports/{id}\` shows the progress and then the download link. The file is kept for ${limits.exportKeptDays} days.`,
    tag: "Prospects",
    allow: "everyone",
    body: NewExport,
    status: 201,
    response: Export,
  },
  ({ context, caller, body }) => beginExport(context, queue, caller, body),
);
