/** A file of the service behind a link: received from where a connection broke, until all of its bytes are there. */
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { CutOff, Gone, reasonOf } from "./fault.ts";
import { waitAfter } from "./service.ts";
import { receive } from "./transfer.ts";

const FRUITLESS_TRIES = 8;

export interface Download {
  readonly isGzipped: boolean;
  /** As they lie in the bucket. Ends after the last one, and never before. */
  readonly bytes: AsyncGenerator<Uint8Array, void, undefined>;
}

export interface Source {
  /** Links end: asked for before each request. */
  readonly link: () => Promise<string>;
  readonly signal: AbortSignal;
  /** Told of each broken connection. */
  readonly onBreak: (why: string) => void;
}

/** Throws CutOff when try after try brings nothing. */
export async function openDownload(source: Source): Promise<Download> {
  const first = await answerFrom(source, {});
  const isGzipped = first.headers["content-encoding"] === "gzip";
  return { isGzipped, bytes: bytesFrom(source, first) };
}

async function* bytesFrom(source: Source, first: IncomingMessage): AsyncGenerator<Uint8Array, void, undefined> {
  const { etag = "", "content-length": length } = first.headers;
  const end = Number(length);
  let answer = first;
  let at = 0;
  for (let fruitless = 0; at < end; fruitless++) {
    if (fruitless === FRUITLESS_TRIES) throw new CutOff("the connection breaks each time");
    if (at > 0 || fruitless > 0) answer = await answerFrom(source, { range: `bytes=${at}-`, "if-match": etag });
    try {
      for await (const chunk of answer) {
        at += chunk.length;
        fruitless = 0;
        yield chunk;
      }
    } catch (error) {
      source.signal.throwIfAborted();
      source.onBreak(reasonOf(error));
    }
  }
}

/** A success, after as many tries as it takes. Throws Gone where none will help. */
async function answerFrom(
  { link, signal, onBreak }: Source,
  headers: Record<string, string>,
): Promise<IncomingMessage> {
  for (let attempt = 1; ; attempt++) {
    let why = "";
    try {
      const answer = await receive(await link(), headers, signal);
      if (answer.statusCode === ("range" in headers ? 206 : 200)) return answer;
      answer.destroy();
      if (answer.statusCode === 404) throw new Gone("the bucket has no such file any more");
      why = `the bucket answered ${answer.statusCode}`;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Gone) throw error;
      why = reasonOf(error);
    }
    if (attempt === FRUITLESS_TRIES) throw new CutOff(why);
    onBreak(why);
    await sleep(waitAfter(attempt), undefined, { signal });
  }
}
