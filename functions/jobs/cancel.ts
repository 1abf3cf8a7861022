/** POST /api/jobs/{id}/cancel: cancels a job that has not ended. */
import { openJobQueues } from "#shared/aws/sqs.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { cancelJob } from "#shared/jobs/bulk/control.ts";
import { Job } from "#shared/jobs/bulk/schema.ts";

const jobs = openJobQueues();

export const handler = endpoint(
  {
    summary: "Cancel a job",
    description:
      "The job stops after the records on which it works, at most 512. What it has changed stays changed and can be undone. The request waits up to five seconds for this; the answer then may still show `running`. Cancelling a cancelled job again changes nothing. 409 if the job has completed or has failed.",
    allow: "canManageProspects",
    scope: ["prospects:write", "prospects:delete"],
    path: IdPath,
    response: Job,
  },
  ({ context, caller, path }) => cancelJob(context, jobs, caller, path.id),
);
