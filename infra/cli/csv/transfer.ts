/** Files over HTTP, byte by byte: sent only once the other side wants them, received until it is certain that nothing is missing. */
import { createReadStream } from "node:fs";
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { Transform } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";

/** Nothing moves for so long: the connection is taken for dead. */
const IDLE_MS = 60_000;
/** Some servers never say that they want the file. */
const CONTINUE_MS = 2_000;

const open = (url: string, options: RequestOptions) =>
  (url.startsWith("https:") ? httpsRequest : httpRequest)(url, { ...options, timeout: IDLE_MS });

export interface Sending {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly file: string;
  /** Its length, as it was announced. */
  readonly bytes: number;
  readonly signal: AbortSignal;
  readonly onBytes: (count: number) => void;
}

/** Gives the status and text of the answer, which may come before the file was sent, or in place of it. Rejects where there is none. */
export async function sendFile({
  url,
  headers,
  file,
  bytes,
  signal,
  onBytes,
}: Sending): Promise<{ status: number; body: string }> {
  const request = open(url, { method: "PUT", headers: { ...headers, expect: "100-continue" }, signal });
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request.once("response", resolve).once("error", reject);
  request.once("timeout", () => request.destroy(new Error("the connection stands still")));
  let isSending = false;
  const send = (): void => {
    if (isSending) return;
    isSending = true;
    // What goes wrong in the connection is told by the request itself.
    pipeline(contentOf(file, bytes), counter(onBytes), request).catch((error: unknown) =>
      request.destroy(asError(error)),
    );
  };
  const late = setTimeout(send, CONTINUE_MS);
  request.once("continue", send);
  request.flushHeaders();
  try {
    const answer = await promise;
    isSending = true;
    return { status: answer.statusCode ?? 0, body: await text(answer) };
  } finally {
    clearTimeout(late);
    request.destroy();
  }
}

/** As long as it was announced to be: a connection could not be used any more after another length. */
async function* contentOf(file: string, bytes: number): AsyncGenerator<Buffer, void, undefined> {
  let left = bytes;
  if (left > 0) {
    for await (const chunk of createReadStream(file, { end: bytes - 1 })) {
      left -= chunk.length;
      yield chunk;
    }
  }
  if (left > 0) throw new Error("the file is shorter than it was");
}

const counter = (onBytes: (count: number) => void): Transform =>
  new Transform({
    transform(chunk: Buffer, _, done) {
      onBytes(chunk.length);
      done(null, chunk);
    },
  });

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

/** The answer to a GET, its body as it came over the line: a stream that fails when the connection breaks. */
export async function receive(
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const request = open(url, { method: "GET", headers: { "accept-encoding": "gzip", ...headers }, signal });
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request.once("response", resolve).once("error", reject);
  request.once("timeout", () => request.destroy(new Error("the connection stands still")));
  request.end();
  return promise;
}
