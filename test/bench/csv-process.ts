/**
 * Runs as a separate process with a limited heap. It imports or exports the prospects of a company, and prints the time, the units and the
 * peak memory. With the work `ratios`, it measures the service and plain SDK calls in turn, so that other load of the machine affects both.
 */
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { BatchWriteCommand, paginateQuery } from "@aws-sdk/lib-dynamodb";
import * as z from "zod/mini";
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Caller } from "#shared/auth/caller.ts";
import { contextOn, type JobContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
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
import { TABLE, tableAt } from "../harness/faulty-dynamodb.ts";
import { bytesOf } from "../harness/item-bytes.ts";
import { beginExport, beginImport } from "../harness/verbs.ts";
import { nowhere, taken } from "./clock.ts";
import type { Blocks } from "./csv-budgets.ts";
import { folderBucket } from "./folder-bucket.ts";
import { plainSdk } from "./table.ts";

const Job = z.object({
  work: z.enum(["import", "export", "ratios"]),
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

async function timed<T>(run: () => Promise<T>) {
  const from = performance.now();
  const { result, usage } = await metered(run);
  return { ...usage, result, ms: performance.now() - from };
}

const link = async () => ({ url: "https://files.test/", expiresAt: "2030-01-01T00:00:00.000Z" });

/** Begins an import whose file is already uploaded. Returns its id. */
async function uploaded(): Promise<number> {
  const { id } = await beginImport(context, { upload: link, download: link }, caller, {});
  const key = importKeys.uploaded({ companyId, id });
  await context.objects.put(key, new Uint8Array(), "text/csv");
  await copyFile(join(folder, "in.csv"), join(folder, key));
  return id;
}

async function runImport(id: number): Promise<{ imported: number; blocks: Blocks }> {
  await runJob(importJob, context, { companyId, id }, ample);
  const { state, failure, imported, prospectBlocks } = StoredImport.parse(
    await context.table.get(keys.import(companyId, id)),
  );
  if (state !== "completed") throw new Error(`${state} ${failure}`);
  if (prospectBlocks === null) throw new Error("nothing was imported");
  return { imported, blocks: prospectBlocks };
}

async function importAll() {
  const id = await uploaded();
  const { ms, writeUnits, result } = await timed(() => runImport(id));
  return { ...memory, ms, writeUnits, ...result };
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
  return { ...memory, ms, readUnits: readUnits - index.readUnits, rowBytes, jobMs, processed };
}

const ROUNDS = 3;
/** Batches that the plain SDK calls write concurrently, as many as an import. */
const LANES = 12;
const BATCH = 25;
const client = plainSdk(endpoint);

async function plainRead({ from, to }: Blocks): Promise<Item[]> {
  const items: Item[] = [];
  for (let block = from; block <= to; block++) {
    const { pk } = keys.prospectBlock(companyId, block);
    const query = { KeyConditionExpression: "pk = :pk", ExpressionAttributeValues: { ":pk": pk } };
    for await (const { Items = [] } of paginateQuery({ client }, { TableName: TABLE, ...query })) items.push(...Items);
  }
  return items;
}

async function plainWrite(items: readonly Item[]): Promise<void> {
  const starts = Array.from({ length: Math.ceil(items.length / BATCH) }, (_, i) => i * BATCH);
  await mapConcurrently(starts, LANES, async (from) => {
    const some = items.slice(from, from + BATCH).map((Item) => ({ PutRequest: { Item } }));
    const { UnprocessedItems = {} } = await client.send(new BatchWriteCommand({ RequestItems: { [TABLE]: some } }));
    if (Object.keys(UnprocessedItems).length > 0) throw new Error("the server left something unprocessed");
  });
}

async function ratios() {
  const sums = { importMs: 0, bareWriteMs: 0, exportMs: 0, bareReadMs: 0 };
  const written: Blocks[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const id = await uploaded();
    const { ms, result } = await timed(() => runImport(id));
    sums.importMs += ms;
    written.push(result.blocks);
    // The copies get other partition keys, so that they do not overwrite the rows of the service.
    const items = (await plainRead(result.blocks)).map((item) => ({ ...item, pk: `elsewhere-${round}#${item.pk}` }));
    sums.bareWriteMs += (await taken(() => plainWrite(items))).wallMs;
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const one of written) sums.bareReadMs += (await taken(() => plainRead(one))).wallMs;
    const { wallMs } = await taken(async () => {
      for await (const _ of await exportProspects(context, caller, {}));
    });
    sums.exportMs += wallMs;
  }
  return sums;
}

const works = { import: importAll, export: exportAll, ratios } as const;
const done = await works[work]();
clearInterval(watch);
process.stdout.write(JSON.stringify({ ...done, ...memory }));
