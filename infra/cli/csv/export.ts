/** Implements `export FILE` with an export job. A repeated command resumes its interrupted job. */
import { randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import type { ExportJob } from "../../../docs/client/api.ts";
import { exitCodes } from "../command/options.ts";
import { download, openJournal, replace } from "./files.ts";
import type { ExportOptions } from "./options.ts";
import { dataOf, digits, Failed, followed, type Service } from "./service.ts";

/** Returns the exit code. */
export async function exportFile(service: Service, { file, filter }: ExportOptions): Promise<number> {
  const { progress } = service;
  const journal = `${file}.export.json`;
  progress.hint = `${file} is unchanged: run the same command to resume`;
  await replace(file, async (fresh) => {
    const packed = `${fresh}.gz`;
    try {
      const { id, processed } = await endedJob(service, journal, filter);
      await download(service, async () => (await jobNow(service, id)).file?.url, packed);
      // `createGunzip` fails if bytes are missing, because the checksum does not match.
      await pipeline(createReadStream(packed), createGunzip(), createWriteStream(fresh, { flush: true }));
      progress.end();
      console.log(`${file}: ${digits(processed)} prospects`);
    } catch (error) {
      // The export has failed, or its file no longer exists. Without the journal, the same command begins a new export.
      if (error instanceof Failed && error.kind === "gone") await rm(journal, { force: true });
      throw error;
    } finally {
      await rm(packed, { force: true });
    }
  });
  await rm(journal, { force: true });
  return exitCodes.done;
}

const jobNow = ({ client }: Service, id: number): Promise<ExportJob> =>
  dataOf(client.GET("/api/prospects/exports/{id}", { params: { path: { id } } }));

async function endedJob(service: Service, journal: string, filter: ExportOptions["filter"]): Promise<ExportJob> {
  const { client, progress } = service;
  const asked = JSON.stringify(filter);
  const { latestOf, add } = await openJournal(service, journal, (id) => jobNow(service, id));
  const old = await latestOf(asked);
  const isUsable = old?.state === "running" || (old?.state === "completed" && old.file !== null);
  const params = { header: { "Idempotency-Key": randomUUID() } };
  const begun = isUsable ? old : await dataOf(client.POST("/api/prospects/exports", { params, body: filter }));
  if (isUsable) progress.say(`export ${begun.id} resumed`);
  else await add(begun, asked);
  const show = ({ processed, total }: ExportJob): void => progress.show("writing", processed, total, "rows");
  const job = await followed(service, () => jobNow(service, begun.id), show);
  if (job.failure !== null) throw new Failed(`export ${job.id} failed: ${job.failure}`, "gone");
  return job;
}
