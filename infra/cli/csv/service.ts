/** Calls the service with a user's token. It retries requests that may succeed later, and describes errors in sentences. */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
import { Problem } from "#shared/problem.ts";
import { type ApiClient, apiClient } from "../../../docs/client/client.ts";
import { requestToken } from "../../local/request-token.ts";
import { Busy, Failed, PATIENT_TRIES, reasonOf, retried } from "./fault.ts";

export interface Service {
  readonly base: string;
  readonly companyId: number;
  readonly client: ApiClient;
  readonly token: () => Promise<string>;
  readonly signal: AbortSignal;
  /** Prints a permanent line for the user. */
  readonly say: (line: string) => unknown;
}

interface Access {
  readonly base: string;
  readonly token: string | undefined;
  readonly email: string | undefined;
}

const ANSWER_MS = 30_000;
/**
 * Age in milliseconds at which the command replaces its token of the local service with a new token. The local service's tokens are valid
 * for longer, so a long command always has a valid token.
 */
const TOKEN_MS = 300_000;

/**
 * Reads the user's company from the service, and returns what the other functions need to call the service. Throws CutOff if the service
 * does not respond, and Failed if it refuses the user.
 */
export async function openService(access: Access, signal: AbortSignal, say: Service["say"]): Promise<Service> {
  const { base } = access;
  const token = tokens(access, signal);
  const send = (request: Request): Promise<Response> => fetch(request, { signal: timed(signal) });
  const client = apiClient({ baseUrl: base, accessToken: token, fetch: send });
  const service = { base, client, token, signal, say, companyId: 0 };
  const me = await answered(service, () => client.GET("/api/me"), 1);
  return { ...service, companyId: me.company.id };
}

const timed = (signal: AbortSignal): AbortSignal => AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);

interface Answer<T> {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}

/**
 * Sends a request. Retries it up to `tries` times if no response comes or if the response allows a retry. So the request must be safe to
 * repeat. The user gets one message when the service becomes unreachable, and one when it responds again. Throws Failed if the service
 * refuses the request. After the last try, throws Busy if the service is busy, and CutOff if no response came.
 */
export async function answered<T>(
  { base, signal, say }: Pick<Service, "base" | "signal" | "say">,
  call: () => Promise<Answer<T>>,
  tries = PATIENT_TRIES,
): Promise<T> {
  let away = "";
  const value = await retried(
    signal,
    async () => {
      const { data, error, response } = await call().catch((error: unknown) => {
        throw error instanceof Failed ? error : new Error(`${base} does not answer: ${reasonOf(error)}`);
      });
      if (data !== undefined) return data;
      throw problemOf(response.status, error, response.headers.get("retry-after"));
    },
    {
      tries,
      onRetry: (why) => {
        if (away === "") say(`${why}: trying again, Ctrl-C ends the command`);
        away = why;
      },
    },
  );
  if (away !== "") say("the service answers again");
  return value;
}

/** Sends a request as `answered` does. Returns undefined if the service responds with 404. */
export const found = async <T>(service: Service, call: () => Promise<Answer<T>>): Promise<T | undefined> =>
  (
    await answered<{ value: T | undefined }>(service, async () => {
      const { data, ...answer } = await call();
      if (answer.response.status === 404) return { data: { value: undefined }, response: answer.response };
      return data === undefined ? answer : { data: { value: data }, response: answer.response };
    })
  ).value;

export async function polled<T>({ signal }: Service, look: () => Promise<T | undefined>): Promise<T> {
  for (let waitMs = 100; ; waitMs = Math.min(2_000, waitMs * 1.5)) {
    const value = await look();
    if (value !== undefined) return value;
    await sleep(waitMs, undefined, { signal });
  }
}

/**
 * Returns the error for a response. It is a Busy if a retry may succeed. A 409 with `Retry-After` means that an equal request is still
 * running.
 */
export function problemOf(status: number, body: unknown, retryAfter: string | null = null): Failed {
  const text = problemText(status, body);
  const mayPass = status >= 500 || status === 429 || (status === 409 && retryAfter !== null);
  return mayPass ? new Busy(text, 1_000 * (Number(retryAfter) || 0)) : new Failed(text);
}

function problemText(status: number, body: unknown): string {
  const problem = z.safeParse(Problem, body);
  if (!problem.success) return `the service answered ${status}`;
  const { detail, errors, requestId } = problem.data;
  const faults = errors
    .map(({ pointer, parameter, message }) => `${pointer ?? parameter ?? ""} ${message}`.trim())
    .filter((fault) => !fault.endsWith(detail));
  return `${[detail, ...faults].join("\n  ")} (${status}, request ${requestId})`;
}

/**
 * Returns a function that provides the access token. If `token` is given, it is always this token. Otherwise it is a token of the local
 * service, which is replaced before it expires.
 */
function tokens({ base, token, email = "" }: Access, signal: AbortSignal): () => Promise<string> {
  let current = { token: token ?? "", until: token === undefined ? 0 : Number.POSITIVE_INFINITY };
  return async () => {
    if (Date.now() < current.until) return current.token;
    const { ok, text } = await requestToken(base, email, timed(signal));
    // A deployed service has no path /local/token and responds with a problem document in JSON. The local service responds to errors with
    // plain text.
    if (!ok)
      throw new Failed(`no token for ${email}: ${text.startsWith("{") ? `${base} is not a local service` : text}`);
    current = { token: text, until: Date.now() + TOKEN_MS };
    return text;
  };
}
