/** For `npm run csv`: calls the service, repeats requests that may succeed later, shows the progress, and saves files. */
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { access, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Spinner } from "yocto-spinner";
import * as z from "zod/mini";
import { Problem } from "#shared/problem.ts";
import { apiClient } from "../../../docs/client/client.ts";
import { codeOf, messageOf, pathOf } from "../command/error.ts";

/** An error after which the same command would fail again. */
export class Failed extends Error {}

/** An error after which the same request may succeed later. */
export class Busy extends Failed {
  readonly waitMs: number;
  /** `retryAfter` is the header `Retry-After` of the answer, in seconds. */
  constructor(message: string, retryAfter: string | null = null) {
    super(message);
    this.waitMs = 1_000 * Math.min(60, Number(retryAfter) || 2);
  }
}

export const digits = (count: number): string => count.toLocaleString("en-US");

export interface Run {
  readonly signal: AbortSignal;
  readonly spinner: Spinner;
}
export type Service = Awaited<ReturnType<typeof openService>>;

export async function openService(base: string, accessToken: string, run: Run) {
  const send = async (request: Request): Promise<Response> => {
    const signal = AbortSignal.any([run.signal, AbortSignal.timeout(30_000)]);
    const response = await fetch(request, { signal });
    if (!response.ok) throw problemOf(response, await response.json().catch(() => undefined));
    // Read the whole body here, so that `retried` repeats the request if the connection breaks in the middle of the body.
    return new Response(await response.arrayBuffer(), response);
  };
  let tries = 1;
  const fetchAgain = (request: Request) => retried(run, "the service", () => send(request.clone()), tries);
  const client = apiClient({ baseUrl: base, accessToken: () => accessToken, fetch: fetchAgain });
  // The first request is tried once, so that the user learns at once if no service runs at `base`.
  await dataOf(client.GET("/api/me"));
  tries = TRIES;
  return { ...run, client };
}

export async function dataOf<T>(answer: Promise<{ readonly data?: T }>): Promise<T> {
  const { data } = await answer;
  if (data === undefined) throw new Failed("the service answered without data");
  return data;
}

function problemOf({ status, headers }: Response, body: unknown): Failed {
  const { data } = z.safeParse(Problem, body);
  const text = data === undefined ? `the service answered ${status}` : textOf(data);
  const retryAfter = headers.get("retry-after");
  // A 409 with `Retry-After` means that an equal request is still running.
  const mayPass = status >= 500 || status === 429 || (status === 409 && retryAfter !== null);
  return mayPass ? new Busy(text, retryAfter) : new Failed(text);
}

function textOf({ detail, errors, status, requestId }: Problem): string {
  const faults = errors.map(({ pointer, parameter, message }) => `\n  ${pointer ?? parameter} ${message}`);
  return `${detail}${faults.join("")} (${status}, request ${requestId})`;
}

/** Maximum number of tries. With two seconds between them, they last ten minutes, in which a service can restart. */
const TRIES = 300;

export async function retried<T>({ signal }: Run, server: string, work: () => Promise<T>, tries = TRIES): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      const failed = failureOf(error, server);
      if (!(failed instanceof Busy) || attempt >= tries) throw failed;
      const seconds = failed.waitMs / 1_000;
      if (attempt === 1) console.error(`${failed.message}: trying again in ${seconds} s, Ctrl-C ends the command`);
      await sleep(failed.waitMs, undefined, { signal });
    }
  }
}

/** Error codes of a full or faulty local disk. The transfer is then not repeated, because it would fail again. */
const DISK = /^E(?:NOSPC|FBIG|DQUOT|IO)$/;

/** Finds the reason of a failure. A failed `fetch` has it in `cause`, with a code but no message if all addresses of a host failed. */
function failureOf(error: unknown, server: string): Failed {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  if (cause instanceof Failed) return cause;
  const code = codeOf(cause) ?? "";
  if (pathOf(cause) !== undefined || DISK.test(code)) return new Failed(messageOf(cause));
  return new Busy(`${server} does not answer: ${messageOf(cause) || code}`);
}

/** Returns the headers of a POST that begins a job. A repeated POST with the same `identity` returns the first job. */
export const once = (identity: readonly unknown[]) => ({
  header: { "Idempotency-Key": createHash("sha256").update(JSON.stringify(identity)).digest("base64url") },
});

export async function followed<J extends { state: string }>(
  { signal, spinner }: Run,
  look: () => Promise<J>,
  text: (job: J) => string,
) {
  for (let waitMs = 100; ; waitMs = Math.min(2_000, waitMs * 1.5)) {
    const job = await look();
    if (job.state !== "awaiting_upload" && job.state !== "running") {
      spinner.stop();
      return job;
    }
    // If stderr is no terminal, the spinner prints each text as a line.
    if (spinner.isSpinning) spinner.text = text(job);
    else spinner.start(text(job));
    await sleep(waitMs, undefined, { signal });
  }
}

/**
 * Lets `write` make a new file, which then replaces `file`, so `file` is never incomplete. Refuses devices and pipes, because the rename
 * would replace them, too.
 */
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

/** Saves a file of the bucket, decompressed. `link` returns a new URL before each attempt, because presigned URLs expire. */
export async function download(run: Run, link: () => Promise<string | undefined>, path: string): Promise<void> {
  await retried(run, "the bucket", async () => {
    const url = await link();
    if (url === undefined) throw new Failed("the service no longer has the file");
    run.spinner.start("receiving the file");
    const { status, headers, body } = await fetch(url, { signal: run.signal });
    // Without the length of the answer, `fetch` would accept an incomplete file.
    if (status !== 200 || body === null || !headers.has("content-length")) {
      await body?.cancel();
      if (status === 404) throw new Failed("the bucket no longer has the file");
      throw new Busy(`the bucket answered ${status}`, headers.get("retry-after"));
    }
    await pipeline(body, createWriteStream(path, { flush: true }));
  });
}
