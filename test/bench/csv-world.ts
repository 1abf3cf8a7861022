/** The outside world of a process that imports or exports a company: the table of another process, and a folder for a bucket. */
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { keys } from "#shared/db/keys.ts";
import { beginImport } from "#shared/imports/begin.ts";
import { runImport } from "#shared/imports/job.ts";
import { fileKeys } from "#shared/imports/places.ts";
import { StoredImport } from "#shared/imports/schema.ts";
import type { JobWorld } from "#shared/jobs/world.ts";
import { worldOn } from "#shared/world.ts";
import { folderBucket } from "./folder-bucket.ts";
import { openBenchTable } from "./table.ts";

export const CsvJob = z.object({
  endpoint: z.string(),
  companyId: z.int(),
  ownerId: z.int(),
  folder: z.string(),
});
export type CsvJob = z.infer<typeof CsvJob>;

export const noQueue = { send: async () => undefined, returnIn: async () => undefined };

export function jobWorldOf({ endpoint, folder }: CsvJob): JobWorld {
  const objects = folderBucket(folder);
  return { ...worldOn(openBenchTable(endpoint)), objects, jobs: noQueue };
}

export const callerOf = ({ companyId, ownerId }: CsvJob): Caller => ({
  companyId,
  userId: ownerId,
  role: "owner",
  permissions: [],
});

export const ample = (): number => 36_000_000;

const link = async () => ({ url: "https://files.test/", expiresAt: "2030-01-01T00:00:00.000Z" });

/** An import that waits for its file, and has it. */
export async function uploaded(world: JobWorld, job: CsvJob): Promise<{ companyId: number; id: number }> {
  const { companyId, folder } = job;
  const { id } = await beginImport(world, { upload: link, download: link }, callerOf(job), {});
  const key = fileKeys.uploaded(companyId, id);
  await world.objects.put(key, new Uint8Array(), "text/csv");
  await copyFile(join(folder, "in.csv"), join(folder, key));
  return { companyId, id };
}

export async function runWhole(world: JobWorld, place: { companyId: number; id: number }): Promise<StoredImport> {
  await runImport(world, place, ample);
  const stored = StoredImport.parse(await world.table.get(keys.import(place.companyId, place.id)));
  if (stored.state !== "completed") throw new Error(`${stored.state} ${stored.failure}`);
  return stored;
}
