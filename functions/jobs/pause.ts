/** POST /api/jobs/{id}/pause: pauses a job that has not ended. */
import { openJobQueues } from "#shared/aws/sqs.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { pauseJob } from "#shared/jobs/bulk/control.ts";
import { Job } from "#shared/jobs/bulk/schema.ts";

const jobs = openJobQueues();

export const handler = endpoint(
  {
    summary: "Pause a job",
    description:
      "The job stops after the records on which it works, at most 512, and the next job of the company runs. The request waits up to five seconds for this; the answer then may still show `running`. Pausing a paused job again changes nothing. 409 if the job has ended. A job that is paused for 30 days is cancelled.",
    allow: "canManageProspects",
    scope: ["prospects:write", "prospects:delete"],
    path: IdPath,
    response: Job,
  },
  ({ context, caller, path }) => pauseJob(context, jobs, caller, path.id),
);
