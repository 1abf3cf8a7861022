/** Sends a file to the bucket, and receives a file from it. A download continues after a broken connection. */
import { createReadStream } from "node:fs";
import http from "node:http";
import https from "node:https";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { Upload } from "../../../docs/client/api.ts";
import { fileFault } from "./files.ts";
import { Failed, hasCode, pause, type Run, retryAfterMs } from "./service.ts";

/** A connection without traffic is then treated as broken. */
const IDLE_MS = 60_000;
/** An upload then begins without `100 Continue`, because some servers never send it. */
const CONTINUE_MS = 2_000;

/** `fetch` decompresses the response, so the received bytes would not say where an interrupted download must continue. */
function open(url: string, options: http.RequestOptions) {
  const request = (url.startsWith("https:") ? https : http).request(url, { timeout: IDLE_MS, ...options });
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  request.once("response", resolve).once("error", reject);
  request.once("timeout", () => request.destroy(new Error("the connection is idle")));
  return { request, answer: promise };
}

/** The response may come before the whole file is sent. Throws Failed if the file cannot be read or is not `bytes` bytes long. */
export async function sendFile(
  { url, headers, file, bytes }: Pick<Upload, "url" | "headers"> & { readonly file: string; readonly bytes: number },
  signal: AbortSignal,
  onBytes: (sent: number) => void,
): Promise<{ status: number | undefined; retryAfter: string | undefined; body: string }> {
  async function* content(): AsyncGenerator<Buffer, void, undefined> {
    let sent = 0;
    for await (const chunk of createReadStream(file)) {
      sent += chunk.length;
      if (sent > bytes) break;
      onBytes(sent);
      yield chunk;
    }
    if (sent !== bytes) throw new Failed("the file has changed during the upload");
  }
  const { request, answer } = open(url, { method: "PUT", headers: { ...headers, expect: "100-continue" }, signal });
  const source = Readable.from(content()).once("error", (error) => request.destroy(fileFault(error, file)));
  request.once("continue", () => source.pipe(request)).flushHeaders();
  const late = setTimeout(() => request.emit("continue"), CONTINUE_MS);
  try {
    const received = await answer;
    const { statusCode: status, headers: answered } = received;
    return { status, retryAfter: answered["retry-after"], body: await text(received) };
  } finally {
    clearTimeout(late);
    source.destroy();
    request.destroy();
  }
}

/** A download starts again at the first byte each time the file has changed. */
const MAX_BEGINNINGS = 4;

/**
 * If the file changes during the download, `save` is called again. `link` returns a new URL before each request, because presigned URLs
 * expire.
 */
export async function download(
  run: Run,
  link: () => Promise<string | undefined>,
  save: (bytes: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<void> {
  for (let beginning = 1; ; beginning++) {
    try {
      return await save(bytesOf(run, link));
    } catch (error) {
      if (!hasCode(error, "changed")) throw error;
      if (beginning >= MAX_BEGINNINGS) throw new Failed("the file in the bucket changes again and again", "cutOff");
      run.progress.say("the file in the bucket has changed: the download begins again");
    }
  }
}

/** Each byte once. Throws Failed with the code `changed` if the file has changed since its first part arrived. */
async function* bytesOf(run: Run, link: () => Promise<string | undefined>) {
  let [at, end] = [0, Number.POSITIVE_INFINITY];
  let etag: string | undefined;
  for (let attempt = 1; at < end; attempt++) {
    try {
      const url = await link();
      if (url === undefined) throw new Failed("the service no longer has the file", "gone");
      const rest = { range: `bytes=${at}-`, ...(etag !== undefined && { "if-match": etag }) };
      const { request, answer } = open(url, {
        headers: { "accept-encoding": "gzip", ...(at > 0 && rest) },
        signal: run.signal,
      });
      request.end();
      const received = await answer;
      const length = lengthOf(received, at, etag);
      if (at === 0) etag = received.headers.etag;
      end = at + length;
      for await (const chunk of received) {
        at += chunk.length;
        attempt = 0;
        run.progress.show({ name: "receiving", done: at, total: end, unit: "bytes" });
        yield chunk;
      }
    } catch (error) {
      await pause(run, { server: "the bucket" }, attempt, error);
    }
  }
}

/** Throws Failed unless the response contains the file from the position `at` on, with the same `etag`, if defined. */
function lengthOf(received: http.IncomingMessage, at: number, etag: string | undefined): number {
  const { statusCode: status, headers } = received;
  const length = headers["content-length"];
  const isOther = status === 206 && etag !== undefined && headers.etag !== etag;
  if (!isOther && status === (at > 0 ? 206 : 200) && length !== undefined) return Number(length);
  received.destroy();
  if (status === 404) throw new Failed("the bucket no longer has the file", "gone");
  // 412: the file no longer has the ETag. 416: it is now shorter than what has arrived.
  if (at > 0 && (isOther || status === 412 || status === 416)) throw new Failed("the file has changed", "changed");
  const waitMs = retryAfterMs(headers["retry-after"]);
  throw new Failed(`the bucket answered ${status} with the length ${length}`, "busy", waitMs);
}
