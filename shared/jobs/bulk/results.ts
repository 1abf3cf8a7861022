/** The API requests that read the results of a bulk job, in pages or as one file. */
import * as z from "zod/mini";
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Caller } from "#shared/auth/caller.ts";
import type { Objects } from "#shared/aws/s3.ts";
import type { ReadContext } from "#shared/context.ts";
import { explain, pageSizeText, pageTexts } from "#shared/documentation.ts";
import { IdPath } from "#shared/http/paths.ts";
import { membersOf, readResults } from "#shared/jobs/bulk/files.ts";
import { findJob } from "#shared/jobs/bulk/read.ts";
import { ResultOutcome, type StoredBulk, type StoredResult } from "#shared/jobs/bulk/stored.ts";
import * as limits from "#shared/limits.ts";
import { csvText } from "#shared/prospects/csv/write.ts";
import { cursorPage, Id, named, PageSize } from "#shared/schema.ts";

export const JobResult = named(
  "JobResult",
  z.object({ id: Id, outcome: ResultOutcome, code: z.nullable(z.string()), detail: z.nullable(z.string()) }),
  "What a job has done with one record.",
);
export type JobResult = z.infer<typeof JobResult>;

/* @__PURE__ */ explain([JobResult], () => ({
  fields: {
    id: "The id of the prospect.",
    code: "Why the record was skipped or could not be changed, for programs: `not_found`, `changed_since`, or the code of an error.",
    detail: "Why the record could not be changed, in words.",
  },
}));

export const JobResultPage = cursorPage(
  "JobResultPage",
  JobResult,
  "Results of a job, in the order in which it handles its records.",
);
export type JobResultPage = z.infer<typeof JobResultPage>;

/* @__PURE__ */ explain([JobResultPage], () => pageTexts("One page. It may be shorter than `limit`, or empty."));

export const ResultFilter = z.object({ outcome: z.optional(ResultOutcome) });
export const ResultQuery = z.object({
  outcome: z.optional(ResultOutcome),
  cursor: z.optional(z.string().check(z.regex(/^\d{1,5}\.\d{1,3}$/, "must be a cursor"))),
  limit: z._default(PageSize, limits.pageSizeDefault),
});
export type ResultQuery = z.infer<typeof ResultQuery>;

/* @__PURE__ */ explain([ResultFilter, ResultQuery], () => ({
  fields: { outcome: { description: "Only records with this outcome.", example: "failed" } },
}));
/* @__PURE__ */ explain([ResultQuery], () => ({
  fields: {
    cursor: { description: "`nextCursor` of the previous page.", example: "0.50" },
    limit: pageSizeText(),
  },
}));

/** Maximum number of chunks read at the same time. The first step reads one, which is often enough, and each further step twice as many. */
const TOGETHER = 8;
/** Maximum number of chunks that one request reads. If few of their records match the filter, the page is shorter than requested. */
const CHUNKS_PER_PAGE = 64;

const presented = ({ id, outcome, code, detail }: StoredResult): JobResult => ({
  id,
  outcome,
  code: code ?? null,
  detail: detail ?? null,
});

/** Yields the results of each chunk from `first` on. Records of chunks that the job has not handled are `unprocessed`. */
export async function* chunksOfResults(objects: Objects, job: StoredBulk, first: number): AsyncGenerator<JobResult[]> {
  const { done, chunks } = job;
  const readMembers = membersOf(objects, job);
  const stored = Math.min(done, chunks);
  for (
    let [chunk, together] = [first, 1];
    chunk < stored;
    chunk += together, together = Math.min(2 * together, TOGETHER)
  ) {
    const some = Array.from({ length: Math.min(together, stored - chunk) }, (_, i) => chunk + i);
    for (const results of await mapConcurrently(some, TOGETHER, (one) => readResults(objects, job, one)))
      yield results.map(presented);
  }
  for (let chunk = Math.max(first, done); chunk < chunks; chunk++) {
    const members = await readMembers(chunk);
    yield members.map(({ id }) => presented({ id, outcome: "unprocessed" }));
  }
}

/** Returns one page of results. The cursor is the number of a chunk, and a position in this chunk. */
export async function pageOfResults(
  context: ReadContext,
  objects: Objects,
  caller: Caller,
  jobId: number,
  { outcome, cursor = "0.0", limit }: ResultQuery,
): Promise<JobResultPage> {
  const job = await findJob(context, caller, jobId);
  const [first = 0, from = 0] = cursor.split(".").map(Number);
  const items: JobResult[] = [];
  let chunk = first;
  for await (const results of chunksOfResults(objects, job, first)) {
    for (const [at, result] of results.entries()) {
      if (chunk === first && at < from) continue;
      if (items.length === limit) return { items, nextCursor: `${chunk}.${at}` };
      if (outcome === undefined || result.outcome === outcome) items.push(result);
    }
    chunk++;
    if (chunk - first === CHUNKS_PER_PAGE && chunk < job.chunks) return { items, nextCursor: `${chunk}.0` };
  }
  return { items, nextCursor: null };
}

export const resultFile = {
  description:
    "All results of the job, gzipped if the client accepts it. If an error occurs while streaming, the connection breaks, so a client can notice an incomplete file.",
  allow: "canManageProspects",
  scope: ["prospects:write", "prospects:delete", "prospects:import"],
  path: IdPath,
  query: ResultFilter,
} as const;

/** A format of the file of results. `header` is the beginning of the file, and `text` converts the results of a chunk to lines. */
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
