/**
 * Runs as a separate process with a limited heap. It imports or exports the prospects of a company, and prints the time, the units and the
 * peak memory.
 */
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { contextOn, type JobContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { gzipped } from "#shared/http/gzip.ts";
import { exportJob } from "#shared/jobs/export/job.ts";
import { StoredExport } from "#shared/jobs/export/stored.ts";
import { importJob } from "#shared/jobs/import/job.ts";
import { StoredImport } from "#shared/jobs/import/stored.ts";
import { runJob } from "#shared/jobs/job.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import { exportProspects } from "#shared/prospects/csv/export.ts";
import type { ProspectFilter } from "#shared/prospects/filter.ts";
import { tableAt } from "../harness/faulty-dynamodb.ts";
import { bytesOf } from "../harness/item-bytes.ts";
import { beginExport, beginImport } from "../harness/verbs.ts";
import { nowhere } from "./clock.ts";
import { folderBucket } from "./folder-bucket.ts";

const Job = z.object({
  work: z.enum(["import", "export"]),
  endpoint: z.string(),
  companyId: z.int(),
  ownerId: z.int(),
  folder: z.string(),
  /** The partitions of the table that contain the company's prospects. An import prints them, and an export needs them. */
  blocks: z._default(z.object({ from: z.int(), to: z.int() }), { from: 0, to: -1 }),
});
const { work, endpoint, companyId, ownerId, folder, blocks } = Job.parse(JSON.parse(process.argv[2] ?? ""));

const noQueue = { send: async () => undefined, returnIn: async () => undefined };
const context: JobContext = { ...contextOn(tableAt(endpoint)), objects: folderBucket(folder), jobs: noQueue };
const caller: Caller = { companyId, userId: ownerId, role: "owner", permissions: [] };
const ample = (): number => 36_000_000;

const memory = { peakHeapBytes: 0, peakBytes: 0 };
// The process samples its own memory every 20 ms. The maximum that the operating system reports is too large, because it includes the
// memory of the parent process at the fork.
const watch = setInterval(() => {
  const { heapUsed, rss } = process.memoryUsage();
  memory.peakHeapBytes = Math.max(memory.peakHeapBytes, heapUsed);
  memory.peakBytes = Math.max(memory.peakBytes, rss);
}, 20);

async function timed(run: () => Promise<unknown>) {
  const from = performance.now();
  const { usage } = await metered(run);
  return { ...usage, ms: performance.now() - from };
}

const link = async () => ({ url: "https://files.test/", expiresAt: "2030-01-01T00:00:00.000Z" });

async function importAll() {
  const { id } = await beginImport(context, { upload: link, download: link }, caller, {});
  const key = importKeys.uploaded({ companyId, id });
  await context.objects.put(key, new Uint8Array(), "text/csv");
  await copyFile(join(folder, "in.csv"), join(folder, key));
  const { ms, writeUnits } = await timed(() => runJob(importJob, context, { companyId, id }, ample));
  const stored = StoredImport.parse(await context.table.get(keys.import(companyId, id)));
  const { state, failure, imported, prospectBlocks: made } = stored;
  if (state !== "completed") throw new Error(`${state} ${failure}`);
  return { ms, writeUnits, imported, blocks: made };
}

const streamed = async (filter: ProspectFilter = {}): Promise<void> =>
  pipeline(Readable.from(gzipped(await exportProspects(context, caller, filter)), { highWaterMark: 1 }), nowhere());

async function exportAll() {
  let rowBytes = 0;
  for (let block = blocks.from; block <= blocks.to; block++) {
    const pages = context.table.query({ ...keys.prospectBlock(companyId, block), consistency: "eventual" });
    for await (const item of pages) rowBytes += bytesOf(item);
  }
  const noMatch = { dateFrom: Date.UTC(2031, 0) };
  await streamed(noMatch);
  const index = await timed(() => streamed(noMatch));
  const { ms, readUnits } = await timed(() => streamed());
  const { id } = await beginExport(context, noQueue, caller, {});
  const { ms: jobMs } = await timed(() => runJob(exportJob(), context, { companyId, id }, ample));
  const { processed } = StoredExport.parse(await context.table.get(keys.export(companyId, id)));
  return { ms, readUnits: readUnits - index.readUnits, rowBytes, jobMs, processed };
}

const done = work === "import" ? await importAll() : await exportAll();
clearInterval(watch);
process.stdout.write(JSON.stringify({ ...done, ...memory }));
