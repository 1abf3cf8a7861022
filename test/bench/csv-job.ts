/** A process of its own, with a heap of its own size, that imports or exports a company and tells what that took. */
import { rename } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod/mini";
import { keys } from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { beginExport } from "#shared/exports/begin.ts";
import { runExport } from "#shared/exports/job.ts";
import { beginImport } from "#shared/imports/begin.ts";
import { runImport } from "#shared/imports/job.ts";
import { fileKeys } from "#shared/imports/places.ts";
import { StoredImport } from "#shared/imports/schema.ts";
import type { JobWorld } from "#shared/jobs/world.ts";
import { exportProspects } from "#shared/prospects/export.ts";
import type { ProspectFilter } from "#shared/prospects/filter.ts";
import { worldOn } from "#shared/world.ts";
import { bytesOf } from "../fault/item-bytes.ts";
import { taken } from "./clock.ts";
import { Blocks, type Exported, type Imported } from "./csv-figures.ts";
import { folderBucket } from "./folder-bucket.ts";
import { openBenchTable } from "./table.ts";

const Job = z.object({
  work: z.enum(["import", "export"]),
  endpoint: z.string(),
  companyId: z.int(),
  ownerId: z.int(),
  folder: z.string(),
  /** Blocks of the company's prospects. */
  blocks: z.optional(Blocks),
});

const { work, endpoint, companyId, ownerId, folder, blocks } = Job.parse(JSON.parse(process.argv[2] ?? ""));
const objects = folderBucket(folder);
const jobs = { send: async () => undefined, returnIn: async () => undefined };
const world: JobWorld = { ...worldOn(openBenchTable(endpoint)), files: { put: objects.put }, objects, jobs };
const caller = { companyId, userId: ownerId, role: "owner" as const, permissions: [] };
const link = async () => ({ url: "https://files.test/", expiresAt: "2030-01-01T00:00:00.000Z" });
const ample = (): number => 3_600_000;

let peakHeapBytes = 0;
const watch = setInterval(() => {
  peakHeapBytes = Math.max(peakHeapBytes, process.memoryUsage().heapUsed);
}, 20);

async function importAll(): Promise<Imported> {
  const { id } = await beginImport(world, { upload: link, download: link }, caller, {});
  const key = fileKeys.uploaded(companyId, id);
  await objects.put(key, new Uint8Array(), "text/csv");
  await rename(join(folder, "in.csv"), join(folder, key));
  let writeUnits = 0;
  const { wallMs: ms } = await taken(async () => {
    writeUnits = (await metered(() => runImport(world, { companyId, id }, ample))).usage.writeUnits;
  });
  const stored = StoredImport.parse(await world.table.get(keys.import(companyId, id)));
  if (stored.state !== "completed" || stored.prospectBlocks === null)
    throw new Error(`${stored.state} ${stored.failure}`);
  return { ms, writeUnits, blocks: stored.prospectBlocks, imported: stored.imported, peakHeapBytes };
}

async function exportAll({ from, to }: Blocks): Promise<Exported> {
  let rowBytes = 0;
  const bare = async (each: (item: Record<string, unknown>) => void): Promise<void> => {
    for (let block = from; block <= to; block++) {
      const pages = world.table.query({ ...keys.prospectBlock(companyId, block), consistency: "eventual" });
      for await (const item of pages) each(item);
    }
  };
  const streamed = async (filter: ProspectFilter = {}): Promise<void> => {
    for await (const _ of await exportProspects(world, caller, filter));
  };
  await bare((item) => {
    rowBytes += bytesOf(item);
  });
  const nobody = { dateFrom: Date.UTC(2031, 0) };
  await streamed(nobody);
  const index = (await metered(() => streamed(nobody))).usage.readUnits;
  const first = await taken(() => bare(() => undefined));
  let readUnits = 0;
  const { wallMs: ms } = await taken(async () => {
    readUnits = (await metered(streamed)).usage.readUnits - index;
  });
  const last = await taken(() => bare(() => undefined));
  const { id } = await beginExport(world, jobs, caller, {});
  await runExport(world, { companyId, id }, ample);
  return { ms, bareMs: (first.wallMs + last.wallMs) / 2, readUnits, rowBytes, peakHeapBytes };
}

const done = work === "import" ? await importAll() : await exportAll(blocks ?? { from: 0, to: -1 });
clearInterval(watch);
process.stdout.write(JSON.stringify({ ...done, peakHeapBytes }));
