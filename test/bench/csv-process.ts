/** Input, output and context of the bench processes that import or export a company. Times are wall-clock milliseconds. */
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { contextOn, type JobContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { importJob } from "#shared/jobs/import/job.ts";
import { StoredImport } from "#shared/jobs/import/stored.ts";
import { runJob } from "#shared/jobs/job.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import { beginImport } from "../harness/verbs.ts";
import { folderBucket } from "./folder-bucket.ts";
import { openBenchTable } from "./table.ts";

export const CsvJob = z.object({
  endpoint: z.string(),
  companyId: z.int(),
  ownerId: z.int(),
  folder: z.string(),
});
export type CsvJob = z.infer<typeof CsvJob>;

/** A range of numbers of table partitions, including `from` and `to`. Each partition contains a block of 128 consecutive prospect ids. */
export const Blocks = z.object({ from: z.int(), to: z.int() });
export type Blocks = z.infer<typeof Blocks>;

const memory = {
  peakHeapBytes: z.number(),
  peakBytes: z.number(),
};

export const Imported = z.object({
  ...memory,
  ms: z.number(),
  writeUnits: z.number(),
  imported: z.int(),
  blocks: Blocks,
});
export type Imported = z.infer<typeof Imported>;

export const Exported = z.object({
  ...memory,
  /** Milliseconds of an export that is streamed to the client in one HTTP answer. */
  ms: z.number(),
  readUnits: z.number(),
  rowBytes: z.number(),
  /** Milliseconds of an export job, which writes the CSV file to the S3 bucket. */
  jobMs: z.number(),
  processed: z.int(),
});
export type Exported = z.infer<typeof Exported>;

/** Milliseconds of the service's imports and exports, and milliseconds of plain ("bare") SDK calls that write and read the same rows. */
export const Ratios = z.object({
  importMs: z.number(),
  bareWriteMs: z.number(),
  exportMs: z.number(),
  bareReadMs: z.number(),
});
export type Ratios = z.infer<typeof Ratios>;

export const noQueue = { send: async () => undefined, returnIn: async () => undefined };

export function jobContextOf({ endpoint, folder }: CsvJob): JobContext {
  const objects = folderBucket(folder);
  return { ...contextOn(openBenchTable(endpoint)), objects, jobs: noQueue };
}

export const callerOf = ({ companyId, ownerId }: CsvJob): Caller => ({
  companyId,
  userId: ownerId,
  role: "owner",
  permissions: [],
});

export const ample = (): number => 36_000_000;

const link = async () => ({ url: "https://files.test/", expiresAt: "2030-01-01T00:00:00.000Z" });

export async function uploaded(context: JobContext, job: CsvJob): Promise<{ companyId: number; id: number }> {
  const { companyId, folder } = job;
  const { id } = await beginImport(context, { upload: link, download: link }, callerOf(job), {});
  const place = { companyId, id };
  const key = importKeys.uploaded(place);
  await context.objects.put(key, new Uint8Array(), "text/csv");
  await copyFile(join(folder, "in.csv"), join(folder, key));
  return place;
}

export async function runWhole(context: JobContext, place: { companyId: number; id: number }): Promise<StoredImport> {
  await runJob(importJob, context, place, ample);
  const stored = StoredImport.parse(await context.table.get(keys.import(place.companyId, place.id)));
  if (stored.state !== "completed") throw new Error(`${stored.state} ${stored.failure}`);
  return stored;
}
