/**
 * Sends and receives files over HTTP. An upload sends the bytes only after the server has requested them with `100 Continue`. A download
 * continues after a broken connection.
 */
import { createReadStream } from "node:fs";
import { type ClientRequest, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import { Transform } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { backoff, CutOff, Failed, fileFault, Gone, reasonOf, TRIES } from "./fault.ts";

/** Time in milliseconds after which a connection without traffic is treated as broken. */
const IDLE_MS = 60_000;
/** Time in milliseconds after which an upload begins without `100 Continue`, because some servers never send it. */
const CONTINUE_MS = 2_000;

function open(method: string, url: string, headers: OutgoingHttpHeaders, signal: AbortSignal) {
  const send = url.startsWith("https:") ? httpsRequest : httpRequest;
  const request: ClientRequest = send(url, { method, headers, signal, timeout: IDLE_MS });
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request.once("response", resolve).once("error", reject);
  request.once("timeout", () => request.destroy(new Error("the connection is idle")));
  return { request, answer: promise };
}

interface Upload {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly file: string;
  /** The number of bytes to send, from the beginning of the file. If the file has become shorter, the upload fails. */
  readonly bytes: number;
}

/**
 * Sends a file and returns the response. The server may respond before the whole file is sent. Rejects if no response comes.
 * Throws Failed if the file cannot be read or has another length.
 */
export async function sendFile(
  { url, headers, file, bytes }: Upload,
  signal: AbortSignal,
  onBytes: (sent: number) => void,
): Promise<{ status: number; body: string }> {
  const { request, answer } = open("PUT", url, { ...headers, expect: "100-continue" }, signal);
  let isSending = false;
  let sent = 0;
  /** The fault of the file. The rejection of `answer` only says that the request was aborted. */
  let failure: Failed | undefined;
  const hasChanged = (): Failed => {
    failure = new Failed("the file has changed during the upload");
    return failure;
  };
  const counter = new Transform({
    transform(chunk: Buffer, _, done) {
      sent += chunk.length;
      if (sent > bytes) return done(hasChanged());
      onBytes(sent);
      done(null, chunk);
    },
    flush: (done) => done(sent === bytes ? null : hasChanged()),
  });
  const send = (): void => {
    if (isSending) return;
    isSending = true;
    const content = createReadStream(file).once("error", (error) => {
      failure = fileFault(error, file);
    });
    // If the file or the connection fails, `pipeline` aborts the request. The promise `answer` then rejects.
    pipeline(content, counter, request).catch(() => {});
  };
  const late = setTimeout(send, CONTINUE_MS);
  request.once("continue", send).flushHeaders();
  try {
    const received = await answer;
    isSending = true;
    return { status: received.statusCode ?? 0, body: await text(received) };
  } catch (error) {
    throw failure ?? error;
  } finally {
    clearTimeout(late);
    request.destroy();
  }
}

/**
 * Yields each byte of a file in the bucket once. Calls `link` for a new presigned URL before each request, because these URLs expire.
 * Throws Gone if the file was deleted, and CutOff after several tries in succession that received no byte.
 */
export async function* download(
  link: () => Promise<string>,
  signal: AbortSignal,
  onBreak: (why: string) => unknown,
): AsyncGenerator<Uint8Array, void, undefined> {
  let [at, end, etag] = [0, Number.POSITIVE_INFINITY, ""];
  for (let fruitless = 1; at < end; fruitless++) {
    try {
      const resume = at === 0 ? {} : { range: `bytes=${at}-`, "if-match": etag };
      const { request, answer } = open("GET", await link(), { "accept-encoding": "gzip", ...resume }, signal);
      request.end();
      const received = await answer;
      const { statusCode, headers } = received;
      if (statusCode !== (at === 0 ? 200 : 206)) received.destroy();
      if (statusCode === 404) throw new Gone("the bucket no longer has the file");
      if (statusCode !== (at === 0 ? 200 : 206)) throw new Error(`the bucket answered ${statusCode}`);
      const length = headers["content-length"];
      if (length === undefined) throw new Error("the bucket did not send the length of the file");
      end = at + Number(length);
      etag = headers.etag ?? "";
      for await (const chunk of received) {
        at += chunk.length;
        fruitless = 0;
        yield chunk;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Failed || error instanceof CutOff) throw error;
      if (fruitless >= TRIES) throw new CutOff(reasonOf(error));
      onBreak(reasonOf(error));
      if (fruitless > 0) await backoff(fruitless, signal);
    }
  }
}
