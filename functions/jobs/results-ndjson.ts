/** GET /api/jobs/{id}/results.ndjson: streams the results of a job as newline-delimited JSON, one line for each record. */
import * as z from "zod/mini";
import { openObjects } from "#shared/aws/s3.ts";
import { streamText } from "#shared/http/streaming.ts";
import { ndjson, resultFile, resultsAs } from "#shared/jobs/bulk/results.ts";
import { named } from "#shared/schema.ts";

const objects = openObjects();

export const handler = streamText(
  {
    ...resultFile,
    summary: "Export results of a job as NDJSON",
    response: named("NdjsonFile", z.string(), "A file in UTF-8 with one JSON object on each line."),
    file: { mediaType: "application/x-ndjson", name: "results.ndjson" },
  },
  async ({ context, caller, path, query }) => resultsAs(ndjson, { ...context, objects }, caller, path.id, query),
);
