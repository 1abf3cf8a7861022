/** Calls the service with a user's token, retries requests, and shows the progress. */
import { setTimeout as sleep } from "node:timers/promises";
import yoctoSpinner from "yocto-spinner";
import * as z from "zod/mini";
import { Problem } from "#shared/problem.ts";
import { apiClient } from "../../../docs/client/client.ts";
import { requestToken } from "../../local/request-token.ts";
import { codeOf, messageOf, pathOf } from "../command/error.ts";
import type { Options } from "./options.ts";

/**
 * An error with a message for the user. `final`: the same request would fail again. `gone`: the job or file does not exist. `busy`: the
 * same request may succeed later. `resumable`: the transfer has ended early, and the same command can resume it.
 */
export class Failed extends Error {
  readonly kind: "final" | "gone" | "busy" | "resumable";
  /** What the server asks the client to wait. */
  readonly retryAfterMs: number;
  constructor(message: string, kind: Failed["kind"] = "final", retryAfterMs = 0) {
    super(message);
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
  }
}

export const digits = (count: number): string => count.toLocaleString("en-US");

/** Shows the progress on stderr: one redrawn line in a terminal, and at most one line every two seconds elsewhere. */
export function openProgress() {
  const spinner = yoctoSpinner({ stream: process.stderr, handleSignals: false });
  const everyMs = process.stderr.isTTY ? 100 : 2_000;
  let last = { step: "", at: 0 };
  return {
    hint: "the service has done nothing yet: run the same command again",
    show(step: string, done: number, total: number | null, unit: "rows" | "MB"): void {
      if (step === last.step && Date.now() - last.at < everyMs) return;
      last = { step, at: Date.now() };
      const share = total ? ` ${Math.floor((100 * done) / total)} %` : "";
      const text = `${step}${share} ${digits(done)}${total ? ` of ${digits(total)}` : ""} ${unit}`;
      if (spinner.isSpinning) spinner.text = text;
      else spinner.start(text);
    },
    say: (line: string): void => console.error(line),
    /** Removes the line of progress. */
    end: (): unknown => spinner.stop(),
  };
}

export interface Run {
  readonly signal: AbortSignal;
  readonly progress: ReturnType<typeof openProgress>;
}
export type Service = Awaited<ReturnType<typeof openService>>;

/** Reads the company of the user, and returns what the commands need to call the service. */
export async function openService({ base, token, email }: Options, run: Run) {
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

async function localToken(base: string, email: string | undefined, signal: AbortSignal): Promise<string> {
  const { ok, status, text } = await requestToken(base, String(email), signal).catch(() => {
    throw new Failed(`no local service answers at ${base}: start it with npm start`, "busy");
  });
  if (ok) return text;
  // A deployed service has no path /local/token and responds with JSON, the local service with plain text.
  const why = text.startsWith("{") ? `${base} is not a local service` : text;
  throw new Failed(`no token for ${email}: ${why}`, status >= 500 ? "busy" : "final");
}

interface Policy {
  readonly server: string;
  readonly tries?: number;
  readonly plan?: string;
}

/** Repeats `work` with growing waits while it may succeed later. After the last try, the failure is resumable. */
export async function retried<T>({ signal, progress }: Run, policy: Policy, work: () => Promise<T>): Promise<T> {
  const { server, tries = 48, plan = "trying again, Ctrl-C ends the command" } = policy;
  for (let attempt = 1; ; attempt++) {
    try {
      const value = await work();
      if (attempt > 1) progress.say(`${server} answers again`);
      return value;
    } catch (error) {
      signal.throwIfAborted();
      const failed = failureOf(error, server);
      if (failed.kind !== "busy") throw failed;
      if (attempt >= tries) throw new Failed(failed.message, "resumable");
      const growingMs = Math.min(15_000, 500 * 2 ** (attempt - 1)) * (0.75 + Math.random() / 2);
      const waitMs = Math.max(growingMs, failed.retryAfterMs);
      if (attempt === 1) progress.say(`${failed.message}: ${plan}; the next try is in ${Math.ceil(waitMs / 1_000)} s`);
      await sleep(waitMs, undefined, { signal });
    }
  }
}

/** The reason of a failed `fetch` is in `cause`. It has a code but no message if all addresses of a host failed. */
function failureOf(error: unknown, server: string): Failed {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  if (cause instanceof Failed) return cause;
  const isOfFile = pathOf(cause) !== undefined;
  return isOfFile
    ? new Failed(messageOf(cause))
    : new Failed(`${server} does not answer: ${messageOf(cause) || codeOf(cause)}`, "busy");
}

const RETRY_AFTER_MAX_S = 60;

/** Returns the wait of a `Retry-After` header in seconds, which a server may leave out. */
export const retryAfterMs = (header: string | null | undefined): number =>
  1_000 * Math.min(RETRY_AFTER_MAX_S, /^\d+$/.test(String(header)) ? Number(header) : 0);

function problemOf({ status, headers }: Response, body: unknown): Failed {
  // A 409 with `Retry-After` means that an equal request is still running.
  const mayPass = status >= 500 || status === 429 || (status === 409 && headers.has("retry-after"));
  const kind = mayPass ? "busy" : status === 404 ? "gone" : "final";
  const waitMs = retryAfterMs(headers.get("retry-after"));
  const { success, data } = z.safeParse(Problem, body);
  if (!success) return new Failed(`the service answered ${status}`, kind, waitMs);
  const faults = data.errors
    .map(({ pointer, parameter, message }) => [pointer ?? parameter, message].filter(Boolean).join(" "))
    .filter((fault) => !fault.endsWith(data.detail));
  return new Failed(`${[data.detail, ...faults].join("\n  ")} (${status}, request ${data.requestId})`, kind, waitMs);
}

export const isOpen = (job: { readonly state: string } | undefined): boolean =>
  job?.state === "awaiting_upload" || job?.state === "running";

/** Returns the ended job. */
export async function followed<J extends { state: string }>(run: Run, look: () => Promise<J>, show: (job: J) => void) {
  for (let waitMs = 100; ; waitMs = Math.min(2_000, waitMs * 1.5)) {
    const job = await look();
    if (!isOpen(job)) return job;
    show(job);
    await sleep(waitMs, undefined, { signal: run.signal });
  }
}
