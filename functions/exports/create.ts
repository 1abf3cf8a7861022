/** POST /api/prospects/exports: an export into a file, for those that outgrow a streamed answer. */
import { beginExport } from "#shared/exports/begin.ts";
import { Export, NewExport } from "#shared/exports/schema.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { openJobQueues } from "#shared/jobs/queue.ts";
import { limits } from "#shared/limits.ts";

const queue = openJobQueues();

export const handler = endpoint(
  {
    summary: "Begin an export",
    description: `The file that \`GET /api/prospects/export\` streams, made for downloading; of any size. The body holds the filters of the list, as texts. \`GET /api/prospects/exports/{id}\` tells how far it is and gives the link. The file is kept for ${limits.exportKeptDays} days.`,
    tag: "Prospects",
    allow: "everyone",
    body: NewExport,
    status: 201,
    response: Export,
  },
  ({ world, caller, body }) => beginExport(world, queue, caller, body),
);
