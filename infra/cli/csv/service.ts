/** The service as the command calls it: in somebody's name, patiently, and with its problems as texts for people. */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
import { Problem } from "#shared/http/problem.ts";
import { type ApiClient, apiClient } from "../../../docs/client/client.ts";
import { CutOff, Failed, reasonOf } from "./fault.ts";

export interface Service {
  /** Without a slash at the end. */
  readonly base: string;
  readonly companyId: number;
  readonly client: ApiClient;
  readonly token: () => Promise<string>;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

interface Access {
  readonly base: string;
  readonly token: string | undefined;
  readonly email: string | undefined;
}

const ANSWER_MS = 30_000;
/** Some three quarters of a minute of waiting between them. */
const TRIES = 8;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
/** A token of the local service lives longer. */
const TOKEN_MS = 300_000;

/** Tells at once when nobody answers or the token is not taken. Throws Failed. */
export async function openService(access: Access, signal: AbortSignal): Promise<Service> {
  const { base } = access;
  const token = tokens(access, signal);
  const client = apiClient({
    baseUrl: base,
    accessToken: token,
    fetch: (request) => fetch(request, { signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]) }),
  });
  const service = { base, client, token, signal, companyId: 0 };
  try {
    const me = await answered(service, () => client.GET("/api/me"), 1);
    return { ...service, companyId: me.company.id };
  } catch (error) {
    throw error instanceof CutOff && !signal.aborted ? new Failed(error.message) : error;
  }
}

interface Answer<T> {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}

/**
 * What a call gives. One that got no answer, or one that says to come again, is repeated: it has to be safe to repeat. Throws Failed
 * with the problem's text, and CutOff when no try was answered.
 */
export async function answered<T>(
  { base, signal }: Pick<Service, "base" | "signal">,
  call: () => Promise<Answer<T>>,
  tries = TRIES,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    let waitMs = waitAfter(attempt);
    try {
      const { data, error, response } = await call();
      if (data !== undefined) return data;
      const { status, headers } = response;
      const retryAfter = headers.get("retry-after");
      if (attempt >= tries || !isPassing(status, retryAfter)) throw new Failed(problemText(status, error));
      waitMs = Math.max(waitMs, 1_000 * (Number(retryAfter) || 0));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Failed) throw error;
      if (attempt >= tries) throw new CutOff(`${base} does not answer: ${reasonOf(error)}`);
    }
    await sleep(waitMs, undefined, { signal });
  }
}

export const waitAfter = (attempt: number): number =>
  Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1)) * (0.75 + Math.random() / 2);

/** A conflict that names a time is a repetition that came while the first one is still at work. */
const isPassing = (status: number, retryAfter: string | null): boolean =>
  status >= 500 || status === 429 || (status === 409 && retryAfter !== null);

/** Of an answer with another status than a success. */
export function problemText(status: number, body: unknown): string {
  const problem = z.safeParse(Problem, body);
  if (!problem.success) return `the service answered ${status}`;
  const { detail, errors, requestId } = problem.data;
  const faults = errors
    .map(({ pointer, parameter, message }) => `${pointer ?? parameter ?? ""} ${message}`.trim())
    .filter((fault) => !fault.endsWith(detail));
  return `${[detail, ...faults].join("\n  ")} (${status}, request ${requestId})`;
}

/** The local service's own door, where an e-mail address was named; asked again before a token ends. */
function tokens({ base, token, email }: Access, signal: AbortSignal): () => Promise<string> {
  let kept = { token: token ?? "", until: token === undefined ? 0 : Number.POSITIVE_INFINITY };
  return async () => {
    if (Date.now() >= kept.until) {
      kept = { token: await askedFor(base, email ?? "", signal), until: Date.now() + TOKEN_MS };
    }
    return kept.token;
  };
}

async function askedFor(base: string, email: string, signal: AbortSignal): Promise<string> {
  const answer = await fetch(`${base}/local/token`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ email }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
  });
  const text = (await answer.text()).trim();
  if (answer.ok) return text;
  // A deployed service has no such door.
  throw new Failed(`no token for ${email}: ${text.startsWith("{") ? `${base} is no local service` : text}`);
}
