/** GET /api/jobs/{id}: returns the state and the progress of a job. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { readJob } from "#shared/jobs/bulk/read.ts";
import { Job } from "#shared/jobs/bulk/schema.ts";

export const handler = endpoint(
  {
    summary: "Get a job",
    description:
      "For the user who created it, and for admins and owners. The service removes a job 30 days after its end.",
    allow: "canManageProspects",
    scope: ["prospects:write", "prospects:delete", "prospects:import"],
    path: IdPath,
    response: Job,
  },
  ({ context, caller, path }) => readJob(context, caller, path.id),
);
