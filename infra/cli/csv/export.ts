/** `export FILE`: all prospects that the filters mean, in a file that is there only when nothing is missing. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { createGunzip } from "node:zlib";
import type { Export } from "../../../docs/client/api.ts";
import { placeOf, writeWhole } from "./complete-file.ts";
import { openDownload } from "./download.ts";
import { CutOff, exitCodes, Failed, Gone, reasonOf } from "./fault.ts";
import type { ExportOptions } from "./options.ts";
import { digits, type Progress } from "./progress.ts";
import { forgetExport, type KeptExport, keepExport, keptExport } from "./resume-journal.ts";
import { RowCounter } from "./rows.ts";
import { answered, problemText, type Service, waitAfter } from "./service.ts";
import { receive } from "./transfer.ts";

/** More are made into a file first: a streamed answer cannot be gone on with where it broke, and ends at 200 MB. */
const STREAMED_ROWS = 50_000;
const STREAM_TRIES = 3;
const FIRST_LOOK_MS = 100;
const LOOK_EVERY_MS = 2_000;

/** Gives the exit code. Throws Failed and CutOff. */
export async function exportFile(service: Service, options: ExportOptions, progress: Progress): Promise<number> {
  const { client } = service;
  await placeOf(options.file);
  const query = { ...options.filter, pageSize: 1 };
  const { total } = await answered(service, () => client.GET("/api/prospects", { params: { query } }));
  const kept = await keptFor(service, options);
  const way = options.way ?? (kept !== undefined || total > STREAMED_ROWS ? "job" : "stream");
  try {
    const rows = await (way === "job" ? byJob : byStream)(service, options, progress, total);
    progress.end();
    console.log(`${options.file}: ${digits(rows)} prospects`);
    return exitCodes.done;
  } catch (error) {
    progress.end();
    if (!service.signal.aborted) throw error;
    throw new CutOff(`${options.file} is as it was; the same command ${way === "job" ? "goes on" : "begins anew"}`);
  }
}

type Way = (service: Service, options: ExportOptions, progress: Progress, total: number) => Promise<number>;

/** What breaks is begun anew: nobody could say where in it the same prospects would come again. */
const byStream: Way = async (service, options, progress, total) => {
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await streamed(service, options);
      return await save(service, options.file, answer, answer.headers["content-encoding"] === "gzip", progress, total);
    } catch (error) {
      service.signal.throwIfAborted();
      if (error instanceof Failed) throw error;
      progress.say(`${reasonOf(error)}: nothing of it is kept`);
      if (attempt === STREAM_TRIES) {
        if (options.way === "stream")
          throw new CutOff("the answer breaks each time: without --stream the service makes a file");
        return byJob(service, options, progress, total);
      }
    }
    await sleep(waitAfter(attempt), undefined, { signal: service.signal });
  }
};

async function streamed({ base, token, signal }: Service, { filter }: ExportOptions): Promise<IncomingMessage> {
  const query = new URLSearchParams(filter).toString();
  const url = `${base}/api/prospects/export${query === "" ? "" : `?${query}`}`;
  const answer = await receive(url, { authorization: `Bearer ${await token()}` }, signal);
  const { statusCode: status = 0 } = answer;
  if (status === 200) return answer;
  const problem = problemText(status, parsed(await text(answer)));
  throw status >= 500 || status === 429 ? new Error(problem) : new Failed(problem);
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

const byJob: Way = async (service, options, progress, total) => {
  const job = await exported(service, options, progress);
  const link = async (): Promise<string> => (await exportNow(service, job.id)).file?.url ?? gone(job.id);
  try {
    const { isGzipped, bytes } = await openDownload({ link, signal: service.signal, onBreak: progress.say });
    const rows = await save(service, options.file, bytes, isGzipped, progress, job.total ?? total);
    await forgetExport(options.file);
    return rows;
  } catch (error) {
    if (!(error instanceof Gone)) throw error;
    // Else the same command would look for the same file for ever.
    await forgetExport(options.file);
    return gone(job.id);
  }
};

function gone(id: number): never {
  throw new Gone(`the file of export ${id} is not kept any more: the same command has another one made`);
}

/** The export of an earlier command, where one was cut off, or a new one; completed. */
async function exported(service: Service, options: ExportOptions, progress: Progress): Promise<Export> {
  const kept = await keptFor(service, options);
  const old = kept === undefined ? undefined : await exportOf(service, kept);
  if (old !== undefined) progress.say(`export ${old.id} goes on`);
  let job = old ?? (await begin(service, options));
  for (let waitMs = FIRST_LOOK_MS; job.state === "running"; waitMs = Math.min(LOOK_EVERY_MS, waitMs * 1.5)) {
    progress.show({ name: "writing", done: job.processed, total: job.total ?? undefined, unit: "rows" });
    await sleep(waitMs, undefined, { signal: service.signal });
    job = await exportNow(service, job.id);
  }
  if (job.state === "completed") return job;
  await forgetExport(options.file);
  throw new Failed(`export ${job.id} failed: ${job.failure ?? "for no reason that is told"}`);
}

async function begin(service: Service, { file, filter }: ExportOptions): Promise<Export> {
  const { base, companyId, client } = service;
  const header = { "Idempotency-Key": randomUUID() };
  const made = await answered(service, () =>
    client.POST("/api/prospects/exports", { params: { header }, body: { ...filter } }),
  );
  await keepExport(file, { base, companyId, filter: JSON.stringify(filter), id: made.id, createdAt: made.createdAt });
  return made;
}

async function keptFor({ base, companyId }: Service, { file, filter }: ExportOptions): Promise<KeptExport | undefined> {
  const kept = await keptExport(file);
  const isIt = kept?.base === base && kept.companyId === companyId && kept.filter === JSON.stringify(filter);
  return isIt ? kept : undefined;
}

/** Undefined where nothing will come of it. */
async function exportOf(service: Service, { id, createdAt }: KeptExport): Promise<Export | undefined> {
  const found = await answered(service, async () => {
    const answer = await service.client.GET("/api/prospects/exports/{id}", { params: { path: { id } } });
    return answer.response.status === 404 ? { data: null, response: answer.response } : answer;
  });
  if (found === null || found.createdAt !== createdAt || found.state === "failed") return undefined;
  return found.state === "completed" && found.file === null ? undefined : found;
}

const exportNow = (service: Service, id: number): Promise<Export> =>
  answered(service, () => service.client.GET("/api/prospects/exports/{id}", { params: { path: { id } } }));

/** Gives the rows of the file. */
async function save(
  { signal }: Service,
  file: string,
  bytes: AsyncIterable<Uint8Array>,
  isGzipped: boolean,
  progress: Progress,
  total: number,
): Promise<number> {
  const counter = new RowCounter((done) => progress.show({ name: "receiving", done, total, unit: "rows" }));
  // A gzip that ends early is an error here, as its last bytes tell what must have come before.
  await writeWhole(file, bytes, isGzipped ? [createGunzip(), counter] : [counter], signal);
  return counter.rows;
}
