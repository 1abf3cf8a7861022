/** POST /api/prospects/imports/{id}/undo: creates a job that undoes an import. */
import { openJobQueues } from "#shared/aws/sqs.ts";
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { Job, NewUndo } from "#shared/jobs/bulk/schema.ts";
import { beginImportUndo } from "#shared/jobs/import/requests.ts";

const jobs = openJobQueues();

export const handler = command(
  {
    summary: "Undo an import",
    description:
      "For the user who began the import, and for admins and owners. Creates a job that hides the prospects that the import has created and nobody has changed since. A prospect with a later change, note or appointment is skipped with the code `changed_since`. Changes that the import made to other prospects remain. A second undo skips the prospects that are hidden already. 409 if the import is not completed. Also 409 if an earlier undo of it has not ended: `detail` contains the id of that job, and `Location` is its path, if the user may see it.",
    allow: "canManageProspects",
    scope: "prospects:import",
    path: IdPath,
    body: NewUndo,
    status: 202,
    collection: "/api/jobs",
    response: Job,
  },
  ({ context, caller, path, body }) => beginImportUndo(context, jobs, caller, path.id, body),
);
