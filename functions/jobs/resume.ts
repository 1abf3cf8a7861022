/** POST /api/jobs/{id}/resume: resumes a paused job. */
import { openJobQueues } from "#shared/aws/sqs.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { resumeJob } from "#shared/jobs/bulk/control.ts";
import { Job } from "#shared/jobs/bulk/schema.ts";

const jobs = openJobQueues();

export const handler = endpoint(
  {
    summary: "Resume a job",
    description:
      "The job joins the end of the company's queue. Resuming a job that is not paused changes nothing. 409 if the job has ended.",
    allow: "canManageProspects",
    scope: ["prospects:write", "prospects:delete"],
    path: IdPath,
    response: Job,
  },
  ({ context, caller, path }) => resumeJob(context, jobs, caller, path.id),
);
