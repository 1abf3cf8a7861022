/**
 * Runs as a separate process with a small heap. It creates a bulk job over all prospects of a company by a filter, runs it for some time,
 * and reads all its results. It prints the peaks of its memory.
 */
import * as z from "zod/mini";
import { contextOn } from "#shared/context.ts";
import { changeKind } from "#shared/jobs/bulk/change.ts";
import { createBulk } from "#shared/jobs/bulk/create.ts";
import { ndjson, resultsAs } from "#shared/jobs/bulk/result-files.ts";
import { bulkRunner } from "#shared/jobs/bulk/run.ts";
import { folderBucket } from "../bench/folder-bucket.ts";
import { openBenchTable } from "../bench/table.ts";

const HeapTask = z.object({
  endpoint: z.string(),
  companyId: z.int(),
  ownerId: z.int(),
  now: z.int(),
  count: z.int(),
  folder: z.string(),
  /** Milliseconds for which the job runs. */
  runMs: z.int(),
});

const { endpoint, companyId, ownerId, now, count, folder, runMs } = HeapTask.parse(JSON.parse(process.argv[2] ?? ""));
const caller = { companyId, userId: ownerId, role: "owner" as const, permissions: [] };
const began = Date.now();
const context = contextOn(openBenchTable(endpoint), { now: () => now + Date.now() - began });
const jobs = { send: async () => undefined, returnIn: async () => undefined };
const services = { ...context, objects: folderBucket(folder), jobs };

interface Peaks {
  readonly heapMb: number;
  /** Memory of the whole process, which includes the typed arrays of the search index. */
  readonly rssMb: number;
}

const MB = 2 ** 20;

async function peaksOf(work: () => Promise<unknown>): Promise<Peaks> {
  let [heapMb, rssMb] = [0, 0];
  const watch = setInterval(() => {
    const { heapUsed, rss } = process.memoryUsage();
    heapMb = Math.max(heapMb, heapUsed / MB);
    rssMb = Math.max(rssMb, rss / MB);
  }, 5);
  await work();
  clearInterval(watch);
  return { heapMb: Math.round(heapMb), rssMb: Math.round(rssMb) };
}

let id = 0;
const creation = await peaksOf(async () => {
  const action = { set: { currentStatusId: null } };
  const job = await createBulk(context, services, caller, { filter: { all: true }, action, expectedCount: count });
  if (!("id" in job) || job.total !== count) throw new Error("the job has not all prospects");
  id = job.id;
});
const ends = Date.now() + runMs;
const run = await peaksOf(() =>
  bulkRunner({ prospect_bulk: changeKind })(services, { companyId, id }, () => ends - Date.now() + 60_000),
);
let lines = 0;
const results = await peaksOf(async () => {
  for await (const text of resultsAs(ndjson, context, services.objects, caller, id, {}))
    lines += text.split("\n").length - 1;
});
process.stdout.write(JSON.stringify({ creation, run, results, lines }));
