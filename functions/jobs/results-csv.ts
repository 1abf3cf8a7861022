/** GET /api/jobs/{id}/results.csv: streams the results of a job as CSV, one line for each record. */
import * as z from "zod/mini";
import { openObjects } from "#shared/aws/s3.ts";
import { streamText } from "#shared/http/streaming.ts";
import { csv, resultFile, resultsAs } from "#shared/jobs/bulk/results.ts";
import { named } from "#shared/schema.ts";

const objects = openObjects();

export const handler = streamText(
  {
    ...resultFile,
    summary: "Export results of a job as CSV",
    response: named("CsvFile", z.string(), "A CSV file in UTF-8 whose lines end in CRLF."),
    file: { mediaType: "text/csv", name: "results.csv" },
  },
  async ({ context, caller, path, query }) => resultsAs(csv, { ...context, objects }, caller, path.id, query),
);
