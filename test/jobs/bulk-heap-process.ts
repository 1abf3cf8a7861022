/**
 * Runs as a separate process with a small heap. It does one of four tasks: it creates a bulk job over all prospects of a company, creates
 * the undo of a job, executes a job to its end, or reads all results of a job. It prints its peak memory and the seconds that it took.
 * `cpuSeconds` is processor time, which depends less on other load of the machine.
 */
import * as z from "zod/mini";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { changeKind } from "#shared/jobs/bulk/change.ts";
import { createBulk } from "#shared/jobs/bulk/create.ts";
import { readJob } from "#shared/jobs/bulk/read.ts";
import { ndjson, resultsAs } from "#shared/jobs/bulk/result-files.ts";
import { pageOfResults } from "#shared/jobs/bulk/result-pages.ts";
import { bulkJob } from "#shared/jobs/bulk/run.ts";
import { hasEnded, StoredBulk } from "#shared/jobs/bulk/stored.ts";
import { beginUndo, undoKind } from "#shared/jobs/bulk/undo.ts";
import { runJob } from "#shared/jobs/job.ts";
import * as limits from "#shared/limits.ts";
import { folderBucket } from "../bench/folder-bucket.ts";
import { openBenchTable } from "../bench/table.ts";

const HeapTask = z.object({
  endpoint: z.string(),
  companyId: z.int(),
  ownerId: z.int(),
  now: z.int(),
  folder: z.string(),
  work: z.union([
    z.object({ change: z.object({ statusId: z.int(), count: z.int() }) }),
    z.object({ undo: z.int() }),
    z.object({ run: z.int() }),
    z.object({ read: z.object({ id: z.int(), firstId: z.int(), count: z.int() }) }),
  ]),
});

const { endpoint, companyId, ownerId, now, folder, work } = HeapTask.parse(JSON.parse(process.argv[2] ?? ""));
const caller = { companyId, userId: ownerId, role: "owner" as const, permissions: [] };
const began = Date.now();
const context = contextOn(openBenchTable(endpoint), { now: () => now + Date.now() - began });
const jobs = { send: async () => undefined, returnIn: async () => undefined };
const services = { ...context, objects: folderBucket(folder), jobs };

async function change({ statusId, count }: { readonly statusId: number; readonly count: number }) {
  const action = { set: { currentStatusId: statusId } };
  const job = await createBulk(context, services, caller, { filter: { all: true }, action, expectedCount: count });
  if (!("id" in job)) throw new Error("a dry run is no job");
  return { id: job.id };
}

const READ_EVERY_MS = 250;

/**
 * Executes the job, and reads it again and again meanwhile, as a client does. Returns how often it was read, and the first wrong response.
 */
async function run(id: number) {
  const stored = async (): Promise<StoredBulk> =>
    StoredBulk.parse(await context.table.get(keys.bulkJob(companyId, id)));
  let [looks, handled] = [0, 0];
  let fault: string | undefined;
  async function look(): Promise<void> {
    const { total, changed, unchanged, skipped, failed, unprocessed } = await readJob(context, caller, id);
    const counts = [changed, unchanged, skipped, failed, unprocessed];
    const isWrong =
      counts.some((count) => count < 0) ||
      counts.reduce((sum, count) => sum + count) !== total ||
      total - unprocessed < handled;
    if (isWrong) fault ??= `${counts.join(" + ")} of ${total}, and ${handled} before`;
    handled = total - unprocessed;
    looks++;
  }
  let isRunning = true;
  const watching = (async () => {
    while (isRunning) {
      await look();
      await new Promise((resolve) => setTimeout(resolve, READ_EVERY_MS));
    }
  })();
  // One invocation works on a job for at most a minute, so the runner is called until the job has ended.
  while (!hasEnded(await stored())) {
    await runJob(bulkJob({ prospect_bulk: changeKind, undo: undoKind }), services, { companyId, id }, () => 900_000);
  }
  isRunning = false;
  await watching;
  await look();
  const { state, total, changed, unchanged, skipped, failed } = await stored();
  return { state, counts: { total, changed, unchanged, skipped, failed }, looks, fault };
}

/** Reads all results, first in pages and then as a file. Each of the `count` records may have at most one result. */
async function read({ id, firstId, count }: { readonly id: number; readonly firstId: number; readonly count: number }) {
  const seen = new Uint8Array(count);
  const outcomes: Record<string, number> = {};
  let pages = 0;
  let cursor: string | undefined;
  do {
    const query = { cursor, limit: limits.pageSizeMax };
    const { items, nextCursor } = await pageOfResults(context, services.objects, caller, id, query);
    for (const { id: record, outcome } of items) {
      const before = seen[record - firstId];
      if (before !== 0) throw new Error(`${record} has more than one result, or is no record of the job`);
      seen[record - firstId] = 1;
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    }
    pages++;
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined);
  let lines = 0;
  for await (const text of resultsAs(ndjson, context, services.objects, caller, id, {})) {
    lines += text.split("\n").length - 1;
  }
  return { outcomes, pages, lines };
}

function done(): Promise<object> {
  if ("change" in work) return change(work.change);
  if ("undo" in work) return beginUndo(context, jobs, caller, work.undo, {}).then(({ id }) => ({ id }));
  return "run" in work ? run(work.run) : read(work.read);
}

const MB = 2 ** 20;
let [heapMb, rssMb] = [0, 0];
/** The peak of the heap in each minute of the process. It shows whether the memory grows while more records are handled. */
const heapMbByMinute: number[] = [];
const watch = setInterval(() => {
  const { heapUsed, rss } = process.memoryUsage();
  heapMb = Math.max(heapMb, heapUsed / MB);
  // The memory of the whole process includes the typed arrays of the search index.
  rssMb = Math.max(rssMb, rss / MB);
  const minute = Math.floor((Date.now() - began) / 60_000);
  heapMbByMinute[minute] = Math.max(heapMbByMinute[minute] ?? 0, Math.round(heapUsed / MB));
}, 10);
const result = await done();
clearInterval(watch);
const { user, system } = process.cpuUsage();
const cpuSeconds = Math.round((user + system) / 1_000_000);
const peaks = { heapMb: Math.round(heapMb), rssMb: Math.round(rssMb), heapMbByMinute, cpuSeconds };
process.stdout.write(JSON.stringify({ ...peaks, seconds: Math.round((Date.now() - began) / 1_000), ...result }));
