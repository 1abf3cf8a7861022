/** The local files of the CSV command. After a crash, a file has either its old content or its complete new content. */
import { createWriteStream } from "node:fs";
import { access, rename, rm, stat } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { Failed, type Run, retried } from "./service.ts";

/** Lets `write` make a new file, which then replaces `file`. Refuses devices and pipes, because the rename would replace them, too. */
export async function replace(file: string, write: (fresh: string) => Promise<void>): Promise<void> {
  const existing = await stat(file).catch(() => undefined);
  if (existing?.isFile() === false) throw new Failed(`${file} is not a regular file and cannot be replaced`);
  await access(dirname(file));
  const fresh = `${file}.${process.pid}.part`;
  try {
    await write(fresh);
    await rename(fresh, file);
  } finally {
    await rm(fresh, { force: true });
  }
}

/** Milliseconds without traffic after which a connection counts as broken. */
const IDLE_MS = 60_000;

/** Does not use `fetch`, because `fetch` decompresses the response and accepts an incomplete one. */
function get(url: string, signal: AbortSignal): Promise<http.IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const options = { headers: { "accept-encoding": "gzip" }, signal, timeout: IDLE_MS };
  const request = (url.startsWith("https:") ? https : http).get(url, options, resolve);
  request.once("error", reject).once("timeout", () => request.destroy(new Error("the connection is idle")));
  return promise;
}

/**
 * Saves a file of the bucket, decompressed. `link` returns a new URL before each attempt, because presigned URLs expire. `createGunzip`
 * fails if bytes are missing.
 */
export async function download(run: Run, link: () => Promise<string | undefined>, path: string): Promise<void> {
  await retried(run, "the bucket", async () => {
    const url = await link();
    if (url === undefined) throw new Failed("the service no longer has the file", "gone");
    run.spinner.start("receiving the file");
    const response = await get(url, run.signal);
    const { statusCode: status, headers } = response;
    if (status !== 200 || headers["content-length"] === undefined) {
      response.destroy();
      if (status === 404) throw new Failed("the bucket no longer has the file", "gone");
      throw new Failed(`the bucket answered ${status}`, "busy", headers["retry-after"]);
    }
    const unpacked = headers["content-encoding"] === "gzip" ? [createGunzip()] : [];
    await pipeline([response, ...unpacked, createWriteStream(path, { flush: true })]);
  });
}
