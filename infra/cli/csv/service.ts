/** Calls the service with a user's token, retries, and describes errors in sentences. */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
import { Problem } from "#shared/problem.ts";
import { type ApiClient, apiClient } from "../../../docs/client/client.ts";
import { codeOf, messageOf } from "../../command/error.ts";
import { requestToken } from "../../local/request-token.ts";
import type { Options } from "./options.ts";
import type { Progress, Step } from "./progress.ts";

type FailureCode = "final" | "gone" | "busy" | "changed" | "cutOff";

/**
 * An error with a message for the user. `final`: the same request would fail again. `gone`: the job or file does not exist. `busy`: the
 * same request may succeed later. `changed`: the file has changed during the download. `cutOff`: the transfer has ended early, and the same
 * command can resume it.
 */
export class Failed extends Error {
  override readonly name = "Failed";
  readonly code: FailureCode;
  /** What the server asks the client to wait. */
  readonly retryAfterMs: number;
  constructor(message: string, code: FailureCode = "final", retryAfterMs = 0) {
    super(message);
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

export const hasCode = (error: unknown, code: FailureCode): boolean => error instanceof Failed && error.code === code;

type Policy = { readonly server: string; readonly tries?: number; readonly plan?: string };
export type Run = { readonly signal: AbortSignal; readonly progress: Progress };
export type Service = Run & {
  readonly base: string;
  readonly companyId: number;
  readonly userId: number;
  readonly client: ApiClient;
};

/** Reads the company of the user, and returns what the commands need to call the service. */
export async function openService({ base, token, email }: Options, run: Run): Promise<Service> {
  const send = async (request: Request): Promise<Response> => {
    const signal = AbortSignal.any([run.signal, AbortSignal.timeout(30_000)]);
    // The local service issues a new token for each request, so that it does not expire during a long command.
    request.headers.set("Authorization", `Bearer ${token ?? (await localToken(base, email, signal))}`);
    const response = await fetch(request, { signal });
    if (!response.ok) throw problemOf(response, await response.json().catch(() => undefined));
    // So that a connection that breaks in the middle of the body is retried, too.
    return new Response(await response.arrayBuffer(), response);
  };
  let tries = 1;
  const retry = (request: Request) => retried(run, { server: "the service", tries }, () => send(request.clone()));
  const client = apiClient({ baseUrl: base, fetch: retry });
  const { company, user } = await dataOf(client.GET("/api/me"));
  // The first request is tried once, so that the user learns at once if no service runs there. Later ones are tried for about ten minutes,
  // so that the service may restart.
  tries = 48;
  return { ...run, base, companyId: company.id, userId: user.id, client };
}

/** Rejects with the reason if the service refused the request. */
export async function dataOf<T>(answer: Promise<{ readonly data?: T }>): Promise<T> {
  const { data } = await answer;
  if (data === undefined) throw new Failed("the service answered without data");
  return data;
}

async function localToken(base: string, email = "", signal: AbortSignal): Promise<string> {
  const { ok, status, text } = await requestToken(base, email, signal).catch(() => {
    signal.throwIfAborted();
    throw new Failed(`no local service answers at ${base}: start it with npm start`, "busy");
  });
  if (ok) return text;
  // A deployed service has no path /local/token and responds with JSON, the local service with plain text.
  const why = text.startsWith("{") ? `${base} is not a local service` : text;
  throw new Failed(`no token for ${email}: ${why}`, status >= 500 ? "busy" : "final");
}

/** Repeats `work` until it succeeds, or until `pause` throws. */
export async function retried<T>(run: Run, policy: Policy, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      const value = await work();
      if (attempt > 1) run.progress.say(`${policy.server} answers again`);
      return value;
    } catch (error) {
      await pause(run, policy, attempt, error);
    }
  }
}

/** Maximum time in milliseconds for which a server can delay the next try. */
const RETRY_AFTER_MAX_MS = 60_000;

/** Returns the wait of a `Retry-After` header (seconds or an HTTP date), at most `RETRY_AFTER_MAX_MS`. */
export function retryAfterMs(header: string | null | undefined, nowMs = Date.now()): number {
  const text = header?.trim() ?? "";
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - nowMs;
  return Number.isNaN(waitMs) ? 0 : Math.min(RETRY_AFTER_MAX_MS, Math.max(0, waitMs));
}

/** A longer wait is shown to the user. Otherwise the command would seem to hang. */
const LONG_WAIT_MS = 5_000;

/**
 * Waits longer after each try, and at least as long as the server asks. Throws if another try would not help, after the last try, and after
 * an interrupt.
 */
export async function pause({ signal, progress }: Run, policy: Policy, attempt: number, error: unknown): Promise<void> {
  const { server, tries = 8, plan = "trying again, Ctrl-C ends the command" } = policy;
  signal.throwIfAborted();
  // The reason of a failed connection is in `cause`, which has a code but no message if all addresses of a host failed.
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const away = `${server} does not answer: ${messageOf(cause) || codeOf(cause)}`;
  const failed = error instanceof Failed ? error : new Failed(away, "busy");
  if (failed.code !== "busy") throw failed;
  if (attempt >= tries) throw new Failed(failed.message, "cutOff");
  const growingMs = Math.min(15_000, 500 * 2 ** (attempt - 1)) * (0.75 + Math.random() / 2);
  const waitMs = Math.max(growingMs, failed.retryAfterMs);
  const when = waitMs < LONG_WAIT_MS ? "" : `; the next try is in ${Math.round(waitMs / 1_000)} s`;
  if (attempt <= 1) progress.say(`${failed.message}: ${plan}${when}`);
  await sleep(waitMs, undefined, { signal });
}

function problemOf({ status, headers }: Response, body: unknown): Failed {
  // A 409 with `Retry-After` means that an equal request is still running.
  const mayPass = status >= 500 || status === 429 || (status === 409 && headers.has("retry-after"));
  const code = mayPass ? "busy" : status === 404 ? "gone" : "final";
  const waitMs = retryAfterMs(headers.get("retry-after"));
  const { success, data } = z.safeParse(Problem, body);
  if (!success) return new Failed(`the service answered ${status}`, code, waitMs);
  const faults = data.errors
    .map(({ pointer, parameter, message }) => `${pointer ?? parameter ?? ""} ${message}`.trim())
    .filter((fault) => !fault.endsWith(data.detail));
  return new Failed(`${[data.detail, ...faults].join("\n  ")} (${status}, request ${data.requestId})`, code, waitMs);
}

export const isOpen = (job: { readonly state: string } | undefined): boolean =>
  job?.state === "awaiting_upload" || job?.state === "running";

/** Returns the ended job. */
export async function followed<J extends { state: string }>(run: Run, look: () => Promise<J>, step: (job: J) => Step) {
  for (let waitMs = 100; ; waitMs = Math.min(2_000, waitMs * 1.5)) {
    const job = await look();
    if (!isOpen(job)) return job;
    run.progress.show(step(job));
    await sleep(waitMs, undefined, { signal: run.signal });
  }
}
