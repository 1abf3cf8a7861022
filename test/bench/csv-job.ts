/**
 * Runs as a separate process with a limited heap. The process imports or exports the prospects of a company, and prints the time, the
 * read or write units and the peak memory.
 */
import { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import * as z from "zod/mini";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { gzipped } from "#shared/http/gzip.ts";
import { exportJob } from "#shared/jobs/export/job.ts";
import { StoredExport } from "#shared/jobs/export/stored.ts";
import { runJob } from "#shared/jobs/job.ts";
import { exportProspects } from "#shared/prospects/csv/export.ts";
import type { ProspectFilter } from "#shared/prospects/filter.ts";
import { bytesOf } from "../harness/item-bytes.ts";
import { beginExport } from "../harness/verbs.ts";
import {
  ample,
  Blocks,
  CsvJob,
  callerOf,
  type Exported,
  type Imported,
  jobContextOf,
  noQueue,
  runWhole,
  uploaded,
} from "./csv-process.ts";

const Job = z.extend(CsvJob, {
  work: z.enum(["import", "export"]),
  /** The partitions of the table that contain the company's prospects. An import prints them, and an export needs them. */
  blocks: z.optional(Blocks),
});

const { work, blocks, ...job } = Job.parse(JSON.parse(process.argv[2] ?? ""));
const { companyId } = job;
const context = jobContextOf(job);
const caller = callerOf(job);

const memory = { peakHeapBytes: 0, peakBytes: 0 };
// The process samples its own memory every 20 ms. The maximum that the operating system reports is too large, because it includes the
// memory of the parent process at the fork.
const watch = setInterval(() => {
  const { heapUsed, rss } = process.memoryUsage();
  memory.peakHeapBytes = Math.max(memory.peakHeapBytes, heapUsed);
  memory.peakBytes = Math.max(memory.peakBytes, rss);
}, 20);

async function timed<T>(run: () => Promise<T>) {
  const from = performance.now();
  const { result, usage } = await metered(run);
  return { ...usage, result, ms: performance.now() - from };
}

async function importAll(): Promise<Imported> {
  const place = await uploaded(context, job);
  const { ms, writeUnits, result } = await timed(() => runWhole(context, place));
  if (result.prospectBlocks === null) throw new Error("nothing was imported");
  return { ...memory, ms, writeUnits, imported: result.imported, blocks: result.prospectBlocks };
}

const streamed = async (filter: ProspectFilter = {}): Promise<void> =>
  pipeline(Readable.from(gzipped(await exportProspects(context, caller, filter)), { highWaterMark: 1 }), nowhere());

const nowhere = (): Writable => new Writable({ write: (_chunk, _encoding, done) => done() });

async function exportAll({ from, to }: Blocks): Promise<Exported> {
  let rowBytes = 0;
  for (let block = from; block <= to; block++) {
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
  return { ...memory, ms, readUnits: readUnits - index.readUnits, rowBytes, jobMs, processed };
}

const done = work === "import" ? await importAll() : await exportAll(blocks ?? { from: 0, to: -1 });
clearInterval(watch);
process.stdout.write(JSON.stringify({ ...done, ...memory }));
