/** The local files of the CSV command. After a crash, a file has either its old content or its complete new content. */
import { createReadStream, existsSync } from "node:fs";
import { access, chmod, open, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import { dirname } from "node:path";
import * as z from "zod/mini";
import { Failed, type Run, retried, retryAfterMs, type Service } from "./service.ts";

/** Lets `write` make a new file, which then replaces `file`. Refuses devices and pipes, because they would be replaced, too. */
export async function replace(file: string, write: (fresh: string) => Promise<void>): Promise<void> {
  const existing = await stat(file).catch(() => undefined);
  if (existing?.isFile() === false) throw new Failed(`${file} is not a regular file and cannot be replaced`);
  const path = existing === undefined ? file : await realpath(file);
  await access(dirname(path));
  const fresh = `${path}.${process.pid}.part`;
  try {
    await write(fresh);
    if (existing !== undefined) await chmod(fresh, existing.mode);
    await rename(fresh, path);
  } finally {
    await rm(fresh, { force: true });
  }
}

/** An entry of the journal, the local file with the jobs that the command has begun. `asked` has the options that change the result. */
const Entry = z.object({ service: z.string(), asked: z.string(), id: z.int(), createdAt: z.string() });
type Entry = z.infer<typeof Entry>;
type Job = Pick<Entry, "id" | "createdAt">;

/** If an interrupted command is run again, it finds the job to resume in its journal. */
export async function openJournal<J extends Job>(
  { base, companyId }: Service,
  path: string,
  look: (id: number) => Promise<J>,
) {
  const entries = existsSync(path) ? entriesIn(await readFile(path, "utf8"), path) : [];
  const service = `${base} company ${companyId}`;
  const own = entries.filter((entry) => entry.service === service);
  /** Undefined if there is no entry, or if the service no longer has the job. */
  async function jobOf(entry: Entry | undefined): Promise<J | undefined> {
    if (entry === undefined) return undefined;
    const job = await look(entry.id).catch((error: unknown) => {
      if (error instanceof Failed && error.kind === "gone") return undefined;
      throw error;
    });
    // After a switch to another table, another job may have the same id.
    return job?.createdAt === entry.createdAt ? job : undefined;
  }
  return {
    latest: () => jobOf(own.at(-1)),
    latestOf: (asked: string) => jobOf(own.findLast((entry) => entry.asked === asked)),
    add({ id, createdAt }: Job, asked: string): Promise<void> {
      const all = [...entries, { service, asked, id, createdAt }];
      return replace(path, (fresh) => writeFile(fresh, JSON.stringify(all, undefined, 2), { flush: true }));
    },
  };
}

function entriesIn(text: string, path: string): Entry[] {
  try {
    return z.parse(z.array(Entry), JSON.parse(text));
  } catch {
    throw new Failed(`${path} is not a journal of this command: move it away`);
  }
}

/** Yields the content. Throws if the file is no longer `bytes` bytes long. */
export async function* contentOf(file: string, bytes: number, show: (done: number) => void) {
  let sent = 0;
  for await (const chunk of createReadStream(file)) {
    sent += chunk.length;
    if (sent > bytes) break;
    show(sent);
    yield chunk;
  }
  if (sent !== bytes) throw new Failed("the file has changed during the upload");
}

/** A connection without traffic is then treated as broken. */
const IDLE_MS = 60_000;

/** `fetch` decompresses the response, so the received bytes would not say where an interrupted download must continue. */
function get(url: string, headers: http.OutgoingHttpHeaders, signal: AbortSignal): Promise<http.IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const request = (url.startsWith("https:") ? https : http).get(url, { headers, signal, timeout: IDLE_MS }, resolve);
  request.once("error", reject).once("timeout", () => request.destroy(new Error("the connection is idle")));
  return promise;
}

/**
 * Saves a file of the bucket. After a broken connection it continues, and if the file has changed it begins again. `link` returns a new URL
 * before each request, because presigned URLs expire.
 */
export async function download(run: Run, link: () => Promise<string | undefined>, path: string): Promise<void> {
  await using file = await open(path, "w");
  let position = 0;
  let etag: string | undefined;
  await retried(run, { server: "the bucket" }, async () => {
    const url = await link();
    if (url === undefined) throw new Failed("the service no longer has the file", "gone");
    const rest = position > 0 ? { range: `bytes=${position}-`, "if-match": etag } : {};
    const response = await get(url, { "accept-encoding": "gzip", ...rest }, run.signal);
    const { statusCode: status, headers } = response;
    if (status === 404) throw new Failed("the bucket no longer has the file", "gone");
    const length = headers["content-length"];
    const isRest = status === 206 && headers.etag === etag;
    if (length === undefined || !(position > 0 ? isRest : status === 200)) {
      response.destroy();
      // 412: the file no longer has the ETag. 416: it is now shorter than what has arrived.
      const hasChanged = position > 0 && (status === 206 || status === 412 || status === 416);
      if (hasChanged) position = 0;
      const why = hasChanged ? "the file in the bucket has changed" : `the bucket answered ${status}, length ${length}`;
      throw new Failed(why, "busy", retryAfterMs(headers["retry-after"]));
    }
    etag = headers.etag;
    const total = position + Number(length);
    for await (const chunk of response) {
      await file.write(chunk, 0, chunk.length, position).catch((error: Error) => {
        throw new Failed(`${path}: ${error.message}`);
      });
      position += chunk.length;
      run.progress.show("receiving", position / 1e6, total / 1e6, "MB");
    }
    await file.truncate(position);
  });
}
