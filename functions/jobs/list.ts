/** GET /api/jobs: lists the jobs of the company that the caller may see. */
import { endpoint } from "#shared/http/endpoint.ts";
import { listJobs } from "#shared/jobs/bulk/read.ts";
import { JobPage, JobQuery } from "#shared/jobs/bulk/schema.ts";

export const handler = endpoint(
  {
    summary: "List jobs",
    description:
      "Newest first. Admins and owners get all jobs of the company, and other users get their own. `nextCursor` leads to the next page; it is null on the last one. A page may have fewer jobs than `limit`, or none.",
    allow: "canManageProspects",
    scope: ["prospects:write", "prospects:delete", "prospects:import"],
    query: JobQuery,
    response: JobPage,
  },
  ({ context, caller, query }) => listJobs(context, caller, query),
);
