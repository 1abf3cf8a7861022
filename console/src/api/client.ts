/** The typed client of the API. The browser adds the session's cookie to each request, so the scripts of the page never see a token. */
import { apiClient } from "canvassing-client";
import type { Problem } from "canvassing-client/api";

/** Other sites cannot send this header, so the service accepts the cookie only together with it. */
export const SAME_SITE = { "X-Requested-With": "canvassing-console" } as const;

export const api = apiClient({ baseUrl: location.origin, headers: SAME_SITE, fetch: withSession });

let refresh: Promise<boolean> | undefined;

/**
 * Replaces the tokens of the session. Returns false if the session has ended. Requests that are refused at the same time wait for the same
 * refresh.
 */
export function renewSession(): Promise<boolean> {
  refresh ??= fetch("/api/session/refresh", { method: "POST", headers: SAME_SITE })
    .then(({ ok }) => ok)
    .finally(() => {
      refresh = undefined;
    });
  return refresh;
}

/**
 * Sends a request. If the service refuses it with 401, refreshes the session and sends the request once more. This is normal, because a
 * token lives for an hour and a session for eight hours.
 */
export async function withSession(request: Request): Promise<Response> {
  const again = request.clone();
  const response = await fetch(request);
  return response.status === 401 && (await renewSession()) ? fetch(again) : response;
}

/** A request that the service refused or could not answer. The message is for the user. */
export class RequestFailed extends Error {
  readonly status: number;
  readonly problem: Problem | undefined;

  constructor(status: number, problem: Problem | undefined) {
    super(textOf(status, problem));
    this.name = "RequestFailed";
    this.status = status;
    this.problem = problem;
  }
}

function textOf(status: number, problem: Problem | undefined): string {
  const faults = problem?.errors?.map(({ message }) => message).join(" ");
  if (faults !== undefined && faults !== "") return faults;
  if (problem?.detail !== undefined) return problem.detail;
  if (status === 429) return "There were too many requests. Wait a moment and try again.";
  return `The service answered with status ${status}.`;
}

interface Reply<T> {
  readonly data?: T | undefined;
  readonly error?: Problem | undefined;
  readonly response: Response;
}

/**
 * Returns the body of a successful response. If there is no session, the browser goes to the sign-in page, which later returns to the
 * present page.
 */
export async function answer<T>(reply: Promise<Reply<T>>): Promise<T> {
  const { data, error, response } = await reply;
  if (response.status === 401) return signIn();
  if (data === undefined) throw new RequestFailed(response.status, error);
  return data;
}

export function signIn(): Promise<never> {
  const here = `${location.pathname}${location.search}`;
  location.assign(`/api/session/login?returnTo=${encodeURIComponent(here)}`);
  return new Promise(() => undefined);
}

export async function signOut(): Promise<void> {
  const response = await fetch("/api/session/logout", { method: "POST", headers: SAME_SITE });
  const { logoutUrl } = response.status === 200 ? await response.json() : { logoutUrl: undefined };
  location.assign(typeof logoutUrl === "string" ? logoutUrl : "/");
}
