/** Implements `export FILE` with an export job. A repeated command resumes its interrupted job. */
import type { ExportJob, NewExport } from "../../../docs/client/api.ts";
import { exitCodes } from "../command/options.ts";
import { dataOf, digits, download, Failed, followed, once, replace, type Service } from "./service.ts";

export async function exportFile(service: Service, file: string, filter: NewExport): Promise<number> {
  await replace(file, async (fresh) => {
    const { id } = await runningOrNew(service, filter);
    const text = ({ processed, total }: ExportJob): string =>
      `writing ${digits(processed)} of ${total === null ? "all" : digits(total)} rows`;
    const { failure, processed } = await followed(service, () => jobNow(service, id), text);
    if (failure !== null) throw new Failed(`export ${id} failed: ${failure}`);
    await download(service, async () => (await jobNow(service, id)).file?.url, fresh);
    service.spinner.stop();
    console.log(`${file}: ${digits(processed)} prospects`);
  });
  return exitCodes.done;
}

const jobNow = ({ client }: Service, id: number): Promise<ExportJob> =>
  dataOf(client.GET("/api/prospects/exports/{id}", { params: { path: { id } } }));

const HOUR_MS = 3_600_000;

/**
 * Returns the running export of an interrupted command, or begins another export. The idempotency key depends only on the filter and the
 * hour, so the same command finds its export again within the hour. `ended` is the id of an export of this hour that has already ended. It
 * changes the key, so that another export begins.
 */
async function runningOrNew(service: Service, filter: NewExport, ended?: number): Promise<ExportJob> {
  const params = once([filter, Math.floor(Date.now() / HOUR_MS), ended]);
  const begun = service.client.POST("/api/prospects/exports", { params, body: filter });
  const job = await dataOf(begun);
  if (!(await begun).response.headers.has("Idempotency-Replayed")) return job;
  const now = await jobNow(service, job.id);
  return now.state === "running" ? now : runningOrNew(service, filter, now.id);
}
