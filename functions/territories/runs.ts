/** POST /api/territories/{id}/runs: creates a job that assigns the prospects inside a territory to a user, or unassigns them. */
import { openObjects } from "#shared/aws/s3.ts";
import { openJobQueues } from "#shared/aws/sqs.ts";
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { isDryRun } from "#shared/jobs/bulk/create.ts";
import { BulkDryRun, Job } from "#shared/jobs/bulk/schema.ts";
import { createRun, NewRun } from "#shared/jobs/bulk/territory-runs.ts";

const services = { objects: openObjects(), jobs: openJobQueues() };

export const handler = command(
  {
    summary: "Assign the prospects of a territory",
    description:
      "Creates a job over the prospects that are inside the polygon at this moment and that the caller may see. Filters count only inside `filter`: an unknown name there is refused, and a filter outside is ignored. `assign` gives the unassigned ones to `toUserId`. `unassign` takes those of `fromUserId`, or of all users, away from them. `reassign` gives those of `fromUserId` to `toUserId`. A prospect that another user gets before the job writes it is skipped with `changed_since`. The job is shown, paused, cancelled and undone like any job. 409 if a run that has not ended has the same territory, or a territory with a prospect that is also inside this one; `detail` names the job and `Location` leads to it, if the user may see that job. Assigning prospects does not assign the territory.",
    allow: "canManageProspects",
    scope: "prospects:write",
    path: IdPath,
    body: NewRun,
    status: 202,
    collection: "/api/jobs",
    response: Job,
    ok: { response: BulkDryRun, applies: isDryRun },
  },
  ({ context, caller, path, body }) => createRun(context, services, caller, path.id, body),
);
