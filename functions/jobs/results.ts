/** GET /api/jobs/{id}/results: returns the results of a job for each record, in pages. */
import { openObjects } from "#shared/aws/s3.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { JobResultPage, pageOfResults, ResultQuery } from "#shared/jobs/bulk/results.ts";

const objects = openObjects();

export const handler = endpoint(
  {
    summary: "List results of a job",
    description:
      "One entry for each record of the job, also of those that it has not handled yet (`unprocessed`). `nextCursor` leads to the next page; it is null on the last one. The service keeps the results for 30 days after the end of the job. `results.ndjson` and `results.csv` return all results as one file.",
    allow: "canManageProspects",
    scope: ["prospects:write", "prospects:delete", "prospects:import"],
    path: IdPath,
    query: ResultQuery,
    response: JobResultPage,
  },
  ({ context, caller, path, query }) => pageOfResults(context, objects, caller, path.id, query),
);
