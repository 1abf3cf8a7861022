/** The API requests that stream all results of a bulk job as one file. */
import type * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { Objects } from "#shared/aws/s3.ts";
import type { ReadContext } from "#shared/context.ts";
import { IdPath } from "#shared/http/paths.ts";
import { findJob } from "#shared/jobs/bulk/read.ts";
import { chunksOfResults, type JobResult, ResultFilter } from "#shared/jobs/bulk/result-pages.ts";
import { csvText } from "#shared/prospects/csv/write.ts";

export const resultFile = {
  description:
    "All results of the job, gzipped if the client accepts it. If an error occurs while streaming, the connection breaks, so a client can notice an incomplete file.",
  tag: "Jobs",
  allow: "canManageProspects",
  path: IdPath,
  query: ResultFilter,
  status: 200,
} as const;

/** A format of the file. `text` converts results to a piece of the file. */
export interface ResultFormat {
  readonly header: string;
  readonly text: (results: readonly JobResult[]) => string;
}

export const ndjson: ResultFormat = {
  header: "",
  text: (results) => results.map((result) => `${JSON.stringify(result)}\n`).join(""),
};

export const csv: ResultFormat = {
  header: csvText([["id", "outcome", "code", "detail"]]),
  text: (results) =>
    csvText(results.map(({ id, outcome, code, detail }) => [String(id), outcome, code ?? "", detail ?? ""])),
};

/** Each piece has the results of one chunk of records. */
export async function* resultsAs(
  { header, text }: ResultFormat,
  context: ReadContext & { readonly objects: Objects },
  caller: Caller,
  jobId: number,
  { outcome }: z.infer<typeof ResultFilter>,
): AsyncGenerator<string> {
  const job = await findJob(context, caller, jobId);
  if (header !== "") yield header;
  for await (const results of chunksOfResults(context.objects, job, 0)) {
    const chosen = outcome === undefined ? results : results.filter((result) => result.outcome === outcome);
    if (chosen.length > 0) yield text(chosen);
  }
}
