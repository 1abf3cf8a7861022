/**
 * Runs as a separate process with a small heap. It creates either a bulk job over all prospects of a company or the undo of a job, executes
 * it to its end, and reads all its results. For each of these three steps, it prints the peak memory and the duration.
 */
import * as z from "zod/mini";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { beginUndo } from "#shared/jobs/bulk/begin-undo.ts";
import { changeKind } from "#shared/jobs/bulk/change.ts";
import { createBulk } from "#shared/jobs/bulk/create.ts";
import { ndjson, resultsAs } from "#shared/jobs/bulk/result-files.ts";
import { bulkRunner } from "#shared/jobs/bulk/run.ts";
import { hasEnded, StoredBulk } from "#shared/jobs/bulk/stored.ts";
import { undoKind } from "#shared/jobs/bulk/undo.ts";
import { folderBucket } from "../bench/folder-bucket.ts";
import { openBenchTable } from "../bench/table.ts";

const HeapTask = z.object({
  endpoint: z.string(),
  companyId: z.int(),
  ownerId: z.int(),
  now: z.int(),
  folder: z.string(),
  /** What the process does: a change of the status of all prospects, or the undo of the job with this id. */
  work: z.union([z.object({ statusId: z.int(), count: z.int() }), z.object({ undo: z.int() })]),
});

const { endpoint, companyId, ownerId, now, folder, work } = HeapTask.parse(JSON.parse(process.argv[2] ?? ""));
const caller = { companyId, userId: ownerId, role: "owner" as const, permissions: [] };
const began = Date.now();
const context = contextOn(openBenchTable(endpoint), { now: () => now + Date.now() - began });
const jobs = { send: async () => undefined, returnIn: async () => undefined };
const services = { ...context, objects: folderBucket(folder), jobs };

interface Peaks {
  readonly heapMb: number;
  /** Memory of the whole process, which includes the typed arrays of the search index. */
  readonly rssMb: number;
  readonly seconds: number;
}

const MB = 2 ** 20;

async function peaksOf(run: () => Promise<unknown>): Promise<Peaks> {
  let [heapMb, rssMb] = [0, 0];
  const from = Date.now();
  const watch = setInterval(() => {
    const { heapUsed, rss } = process.memoryUsage();
    heapMb = Math.max(heapMb, heapUsed / MB);
    rssMb = Math.max(rssMb, rss / MB);
  }, 10);
  await run();
  clearInterval(watch);
  return { heapMb: Math.round(heapMb), rssMb: Math.round(rssMb), seconds: Math.round((Date.now() - from) / 1_000) };
}

async function created(): Promise<number> {
  if ("undo" in work) return (await beginUndo(context, jobs, caller, work.undo, {})).id;
  const action = { set: { currentStatusId: work.statusId } };
  const input = { filter: { all: true as const }, action, expectedCount: work.count };
  const job = await createBulk(context, services, caller, input);
  if (!("id" in job)) throw new Error("a dry run is no job");
  return job.id;
}

const stored = async (id: number): Promise<StoredBulk> =>
  StoredBulk.parse(await context.table.get(keys.bulkJob(companyId, id)));

let id = 0;
const creation = await peaksOf(async () => {
  id = await created();
});
const run = await peaksOf(async () => {
  // One invocation works on a job for at most a minute, so the runner is called until the job has ended.
  while (!hasEnded(await stored(id))) {
    await bulkRunner({ prospect_bulk: changeKind, undo: undoKind })(services, { companyId, id }, () => 900_000);
  }
});
let lines = 0;
const results = await peaksOf(async () => {
  for await (const text of resultsAs(ndjson, context, services.objects, caller, id, {})) {
    lines += text.split("\n").length - 1;
  }
});
const { state, total, changed, unchanged, skipped, failed } = await stored(id);
const counts = { total, changed, unchanged, skipped, failed };
process.stdout.write(JSON.stringify({ id, state, counts, creation, run, results, lines }));
