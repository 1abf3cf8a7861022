/** The typed client of the API. The browser adds the session's cookie, so that no token is in the page. */
import { apiClient } from "canvassing-client";
import type { Problem } from "canvassing-client/api";

/** Other sites cannot send this header, so the service accepts the cookie only together with it. */
export const SAME_SITE = { "X-Requested-With": "canvassing-console" } as const;

export const api = apiClient({ baseUrl: location.origin, headers: SAME_SITE, fetch: withSession });

let refresh: Promise<boolean> | undefined;

/** Replaces the tokens of the session, and returns false if it has ended. Requests that are refused at the same time wait for the same refresh. */
export function renewSession(): Promise<boolean> {
  refresh ??= fetch("/api/session/refresh", { method: "POST", headers: SAME_SITE })
    .then(({ ok }) => ok)
    .finally(() => {
      refresh = undefined;
    });
  return refresh;
}

/** Sends a request. A token lives for an hour and a session for eight, so a refused request is sent again after a refresh. */
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

/** Returns the body of a successful answer. Without a session, the browser leaves the page to sign in and comes back to it. */
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
