/** Imports a large CSV file. The browser uploads the file to S3 with a presigned URL, and a job of the service imports the file from S3. */
import type { ImportJob, Upload } from "canvassing-client/api";
import { answer, api, RequestFailed, ServiceAway } from "../api/client.ts";
import { amount } from "../ui/text.ts";
import type { ImportOutcome, ImportRequest } from "./import-request.ts";

export interface Progress {
  readonly text: string;
  /**
   * The id of the import job, by which the user can cancel the import. Undefined before the job exists. Also undefined for a small file,
   * which is imported by one request without a job and cannot be cancelled.
   */
  readonly jobId?: number;
  /** The share of the file that has been uploaded, from 0 to 1. Undefined before and after the upload. */
  readonly share: number | undefined;
}

const POLL_MS = 1_000;

/** Thrown if the user has cancelled the import. */
export class ImportCancelled extends Error {}

/**
 * Uploads the file and waits until the job has imported it. If the user cancels the import, `signal` stops only the upload. The caller must
 * send a separate request that cancels the job.
 */
export async function importByJob(
  { file, options: { mapping, matchBy, onMatch }, dryRun }: ImportRequest,
  show: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<ImportOutcome> {
  const body = {
    bytes: file.size,
    dryRun,
    ...(Object.keys(mapping).length > 0 && { mapping }),
    ...(matchBy !== undefined && { matchBy, onMatch }),
  };
  const begun = await answer(api.POST("/api/prospects/imports", { body }));
  if (begun.upload === null) throw new Error("The service did not say where to send the file.");
  const { id: jobId, upload } = begun;
  await send(file, upload, signal, (share) => show({ text: `Sending ${file.name} …`, share, jobId }));
  const ended = await untilEnded(jobId, (job) => show({ ...progressOf(job), jobId }));
  if (ended.state === "cancelled") throw new ImportCancelled();
  if (ended.state !== "completed") throw new Error(ended.failure ?? `The import is ${ended.state}.`);
  return { ...ended, id: dryRun ? null : ended.id, errorReport: ended.errorReport?.url };
}

/** Sends the file with XMLHttpRequest, because `fetch` cannot report the progress of an upload in all browsers. */
async function send(
  file: File,
  { url, method, headers }: Upload,
  signal: AbortSignal,
  show: (share: number) => void,
): Promise<void> {
  if (signal.aborted) throw new ImportCancelled();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const request = new XMLHttpRequest();
  request.open(method, url);
  for (const [name, value] of Object.entries(headers)) {
    // The browser sets this header itself, and forbids scripts to set it.
    if (name !== "content-length") request.setRequestHeader(name, value);
  }
  request.upload.addEventListener("progress", ({ loaded, total }) => show(total === 0 ? 0 : loaded / total));
  request.addEventListener("load", () => {
    if (request.status === 200) resolve();
    else reject(new Error(`The bucket refused the file with status ${request.status}.`));
  });
  request.addEventListener("error", () => reject(new ServiceAway()));
  request.addEventListener("abort", () => reject(new ImportCancelled()));
  signal.addEventListener("abort", () => request.abort());
  show(0);
  request.send(file);
  return promise;
}

/** Maximum number of consecutive failed requests while the page follows a job. The service continues the job meanwhile. */
const MAX_FAILURES = 30;

/** Returns true if the same request may succeed later. */
const isTransient = (error: unknown): boolean =>
  error instanceof ServiceAway || (error instanceof RequestFailed && (error.status === 429 || error.status >= 500));

async function untilEnded(id: number, show: (job: ImportJob) => void): Promise<ImportJob> {
  for (let failures = 0; ; ) {
    try {
      const job = await answer(api.GET("/api/prospects/imports/{id}", { params: { path: { id } } }));
      if (job.state !== "awaiting_upload" && job.state !== "running") return job;
      failures = 0;
      show(job);
    } catch (error) {
      if (!isTransient(error) || ++failures > MAX_FAILURES) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function progressOf({ state, processed, written }: ImportJob): Progress {
  if (state === "awaiting_upload") return { text: "The file is sent. The job begins …", share: undefined };
  const rows = written > 0 ? `${amount(written, "row")} written` : `${amount(processed, "row")} read`;
  return { text: `${rows} …`, share: undefined };
}
