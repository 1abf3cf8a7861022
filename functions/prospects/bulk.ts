/** POST /api/prospects/bulk: creates a job that changes or deletes many prospects. */
import { openObjects } from "#shared/aws/s3.ts";
import { openJobQueues } from "#shared/aws/sqs.ts";
import { command } from "#shared/http/endpoint.ts";
import { createBulk, isDryRun } from "#shared/jobs/bulk/create.ts";
import { BulkDryRun, Job, NewBulk } from "#shared/jobs/bulk/schema.ts";
import * as limits from "#shared/limits.ts";

const services = { objects: openObjects(), jobs: openJobQueues() };

export const handler = command(
  {
    summary: "Change many prospects",
    description: `Creates a job that changes up to ${limits.bulkRecords} prospects. The job gets the prospects that the request names or that match its filter at this moment. Filters count only inside \`filter\`: an unknown name there is refused, and a filter outside is ignored. It checks each prospect and the rights of the user again before each write. \`GET /api/jobs/{id}\` shows its progress, and \`POST /api/jobs/{id}/undo\` undoes it. A company's jobs run one after the other; ${limits.bulkWaiting} may wait or be paused.`,
    allow: "canManageProspects",
    scope: ["prospects:write", "prospects:delete"],
    body: NewBulk,
    status: 202,
    collection: "/api/jobs",
    response: Job,
    ok: { response: BulkDryRun, applies: isDryRun },
  },
  ({ context, caller, body }) => createBulk(context, services, caller, body),
);
