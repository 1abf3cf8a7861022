/** Calls the service with a user's token, repeats requests that may succeed later, and shows the progress. */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Spinner } from "yocto-spinner";
import * as z from "zod/mini";
import { Problem } from "#shared/problem.ts";
import { apiClient } from "../../../docs/client/client.ts";
import { localToken } from "../../local/local-token.ts";
import { codeOf, messageOf, pathOf } from "../command/error.ts";
import type { Options } from "./options.ts";

/** An error after which the same command would fail again. */
export class Failed extends Error {}

/** An error after which the same request may succeed later. */
export class Busy extends Failed {
  readonly waitMs: number;
  /** @param retryAfter the header `Retry-After` of the answer, in seconds. A minute is the longest wait. */
  constructor(message: string, retryAfter: string | null = null) {
    super(message);
    this.waitMs = 1_000 * Math.min(60, /^\d+$/.test(String(retryAfter)) ? Number(retryAfter) : 0);
  }
}

export const digits = (count: number): string => count.toLocaleString("en-US");

export interface Run {
  readonly signal: AbortSignal;
  readonly spinner: Spinner;
}
export type Service = Awaited<ReturnType<typeof openService>>;

/** Returns what the commands need to call the service. */
export async function openService({ base, token, email }: Options, run: Run) {
  const accessToken = token ?? (await localToken(base, String(email)));
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

/** Rejects with the reason if the service refused the request. */
export async function dataOf<T>(answer: Promise<{ readonly data?: T }>): Promise<T> {
  const { data } = await answer;
  if (data === undefined) throw new Failed("the service answered without data");
  return data;
}

function problemOf({ status, headers }: Response, body: unknown): Failed {
  const retryAfter = headers.get("retry-after");
  const { success, data } = z.safeParse(Problem, body);
  const text = success ? textOf(data) : `the service answered ${status}`;
  // A 409 with `Retry-After` means that an equal request is still running.
  const mayPass = status >= 500 || status === 429 || (status === 409 && retryAfter !== null);
  return mayPass ? new Busy(text, retryAfter) : new Failed(text);
}

function textOf({ detail, errors, status, requestId }: Problem): string {
  const faults = errors
    .map(({ pointer, parameter, message }) => [pointer ?? parameter, message].filter(Boolean).join(" "))
    .filter((fault) => !fault.endsWith(detail));
  return `${[detail, ...faults].join("\n  ")} (${status}, request ${requestId})`;
}

/** Maximum number of tries. With the growing waits they last about ten minutes, in which a service can restart. */
const TRIES = 48;

/**
 * Repeats `work` with growing waits while the server is busy. Throws the failure of the last try. A repeated command can then resume the
 * transfer.
 */
export async function retried<T>({ signal }: Run, server: string, work: () => Promise<T>, tries = TRIES): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      const value = await work();
      if (attempt > 1) console.error(`${server} answers again`);
      return value;
    } catch (error) {
      signal.throwIfAborted();
      const failed = failureOf(error, server);
      if (!(failed instanceof Busy) || attempt >= tries) throw failed;
      const waitMs = Math.max(Math.min(15_000, 500 * 2 ** (attempt - 1)), failed.waitMs);
      const plan = `trying again, Ctrl-C ends the command; the next try is in ${Math.ceil(waitMs / 1_000)} s`;
      if (attempt === 1) console.error(`${failed.message}: ${plan}`);
      await sleep(waitMs, undefined, { signal });
    }
  }
}

/** The codes of errors of the local disk. A repetition would fail too. */
const DISK = /^E(?:NOSPC|FBIG|DQUOT|IO)$/;

/** The reason of a failed `fetch` is in `cause`. If all addresses of a host failed, `cause` has a code but no message. */
function failureOf(error: unknown, server: string): Failed {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  if (cause instanceof Failed) return cause;
  const code = codeOf(cause) ?? "";
  const isLocal = pathOf(cause) !== undefined || DISK.test(code);
  if (isLocal) return new Failed(messageOf(cause));
  return new Busy(`${server} does not answer: ${messageOf(cause) || code}`);
}

/** Returns the headers of a POST that begins a job. The same identity leads to the same job. */
export const once = (identity: readonly unknown[]) => ({
  header: { "Idempotency-Key": createHash("sha256").update(JSON.stringify(identity)).digest("base64url") },
});

export const isOpen = ({ state }: { readonly state: string }): boolean =>
  state === "awaiting_upload" || state === "running";

/** Shows the progress of a job until it has ended. Returns the ended job. */
export async function followed<J extends { state: string }>(
  { signal, spinner }: Run,
  look: () => Promise<J>,
  text: (job: J) => string,
) {
  for (let waitMs = 100; ; waitMs = Math.min(2_000, waitMs * 1.5)) {
    const job = await look();
    if (!isOpen(job)) return job;
    // If stderr is no terminal, the spinner prints each text as a line.
    if (spinner.isSpinning) spinner.text = text(job);
    else spinner.start(text(job));
    await sleep(waitMs, undefined, { signal });
  }
}
