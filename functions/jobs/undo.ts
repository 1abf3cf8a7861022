/** POST /api/jobs/{id}/undo: creates a job that undoes another job. */
import { openJobQueues } from "#shared/aws/sqs.ts";
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { beginUndo } from "#shared/jobs/bulk/control.ts";
import { Job, NewUndo } from "#shared/jobs/bulk/schema.ts";

const jobs = openJobQueues();

export const handler = command(
  {
    summary: "Undo a job",
    description:
      "Creates a job that restores the fields that still are as the first job wrote them. A prospect whose fields were all changed since is skipped with the code `changed_since`. The undo of a deletion restores the prospects, for admins and owners. 409 if the job has not ended, is an undo itself, was undone before, or ended more than 30 days ago.",
    allow: "canManageProspects",
    scope: "prospects:write",
    path: IdPath,
    body: NewUndo,
    status: 202,
    collection: "/api/jobs",
    response: Job,
  },
  ({ context, caller, path, body }) => beginUndo(context, jobs, caller, path.id, body),
);
