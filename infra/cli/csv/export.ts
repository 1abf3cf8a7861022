/**
 * Implements `export FILE`. It starts an export job in the service and downloads the file that the job writes. It replaces FILE only after
 * the download is complete.
 */
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import * as z from "zod/mini";
import type { ExportJob } from "../../../docs/client/api.ts";
import { CutOff, exitCodes, Failed, Gone } from "./fault.ts";
import { readJson, targetOf, writeJson, writeWhole } from "./files.ts";
import type { ExportOptions } from "./options.ts";
import { digits, type Progress } from "./progress.ts";
import { answered, found, polled, type Service } from "./service.ts";
import { download } from "./transfer.ts";

/** The content of the journal FILE.export.json. With it, the command resumes an interrupted export. */
const Journal = z.object({
  base: z.string(),
  companyId: z.int(),
  filter: z.string(),
  id: z.int(),
  createdAt: z.string(),
});

/** Runs the export and returns the exit code. Throws Failed, or CutOff if the same command can resume the export. */
export async function exportFile(service: Service, options: ExportOptions, progress: Progress): Promise<number> {
  const { file } = options;
  const journal = `${file}.export.json`;
  await targetOf(file);
  try {
    const job = await completed(service, options, journal, progress);
    const link = async (): Promise<string> => (await exportNow(service, job.id)).file?.url ?? gone(job.id);
    await save(file, download(link, service.signal, progress.say), job, progress);
    await rm(journal, { force: true });
    progress.end();
    console.log(`${file}: ${digits(job.processed)} prospects`);
    return exitCodes.done;
  } catch (error) {
    progress.end();
    // The service has already deleted the exported file. Delete the journal too, so that the same command begins a new export.
    if (error instanceof Gone) await rm(journal, { force: true });
    if (!service.signal.aborted) throw error;
    throw new CutOff(`${file} is unchanged: run the same command to resume`);
  }
}

function gone(id: number): never {
  throw new Gone(`the service no longer has the file of export ${id}: run the same command to make a new one`);
}

async function completed(service: Service, options: ExportOptions, journal: string, progress: Progress) {
  const old = await resumable(service, options, journal);
  if (old !== undefined) progress.say(`export ${old.id} resumed`);
  const { id } = old ?? (await begin(service, options, journal));
  const job = await polled(service, async () => {
    const now = await exportNow(service, id);
    if (now.state !== "running") return now;
    progress.show({ name: "writing", done: now.processed, total: now.total ?? undefined, unit: "rows" });
    return undefined;
  });
  if (job.state === "completed") return job;
  await rm(journal, { force: true });
  throw new Failed(`export ${id} failed: ${job.failure}`);
}

async function begin(service: Service, { filter }: ExportOptions, journal: string): Promise<ExportJob> {
  const { base, companyId, client } = service;
  const params = { header: { "Idempotency-Key": randomUUID() } };
  const job = await answered(service, () => client.POST("/api/prospects/exports", { params, body: { ...filter } }));
  const entry = { base, companyId, filter: JSON.stringify(filter), id: job.id, createdAt: job.createdAt };
  await writeJson(journal, entry satisfies z.infer<typeof Journal>);
  return job;
}

/**
 * Returns the export that the journal names. Returns undefined if this export belongs to another service, company or filter, or if it has
 * failed or its file is gone.
 */
async function resumable(service: Service, { filter }: ExportOptions, journal: string): Promise<ExportJob | undefined> {
  const { base, companyId } = service;
  const entry = await readJson(journal, Journal);
  if (entry?.base !== base || entry.companyId !== companyId || entry.filter !== JSON.stringify(filter))
    return undefined;
  const params = { path: { id: entry.id } };
  const job = await found(service, () => service.client.GET("/api/prospects/exports/{id}", { params }));
  // If the service has changed to a new table since the journal was written, another export may have the same id. So the creation times are
  // compared, too.
  if (job === undefined || job.createdAt !== entry.createdAt || job.state === "failed") return undefined;
  return job.state === "completed" && job.file === null ? undefined : job;
}

const exportNow = (service: Service, id: number): Promise<ExportJob> =>
  answered(service, () => service.client.GET("/api/prospects/exports/{id}", { params: { path: { id } } }));

/** Saves the decompressed file. Throws if bytes are missing: the checksum at the end of the gzip data then does not match. */
async function save(file: string, gzipped: AsyncIterable<Uint8Array>, { bytes }: ExportJob, progress: Progress) {
  const total = bytes ?? undefined;
  async function* counted(): AsyncGenerator<Uint8Array, void, undefined> {
    let done = 0;
    for await (const chunk of gzipped) {
      done += chunk.length;
      progress.show({ name: "receiving", done, total, unit: "bytes" });
      yield chunk;
    }
  }
  const gunzip = createGunzip();
  // The callback ignores an error, because `pipeline` also destroys `gunzip` with it. `writeWhole` then throws the error.
  pipeline(counted, gunzip, () => undefined);
  await writeWhole(file, gunzip);
}
