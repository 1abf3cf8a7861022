/** The typed client of the API. The browser adds the session's cookie to each request, so the scripts of the page never see a token. */
import { apiClient } from "canvassing-client";
import type { Problem } from "canvassing-client/api";
import { type FieldFault, faultsIn } from "./faults.ts";
import { sendOnce } from "./once.ts";

/** Protects against CSRF. The service accepts the session's cookie only with this header, because other sites cannot send the header. */
export const SAME_SITE = { "X-Requested-With": "canvassing-console" } as const;

export const api = apiClient({
  baseUrl: location.origin,
  headers: SAME_SITE,
  fetch: (request) => sendOnce(request, withSession),
});

let refresh: Promise<boolean> | undefined;

/** Thrown if no response came, because the browser's own message ("Failed to fetch") would tell the user nothing. */
export class ServiceAway extends Error {
  constructor(options?: ErrorOptions) {
    super("The service did not answer. Check your connection.", options);
    this.name = "ServiceAway";
  }
}

async function send(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch (cause) {
    // An aborted request is no fault: its caller no longer needs the response.
    throw request.signal.aborted ? cause : new ServiceAway({ cause });
  }
}

/**
 * Renews the session's tokens. Returns false if the session has ended. Throws ServiceAway or RequestFailed if the session may still be
 * valid. Concurrent calls share one request.
 */
export function renewSession(): Promise<boolean> {
  refresh ??= renewed().finally(() => {
    refresh = undefined;
  });
  return refresh;
}

async function renewed(): Promise<boolean> {
  const { ok, status } = await send(new Request("/api/session/refresh", { method: "POST", headers: SAME_SITE }));
  if (status === 429 || status >= 500) throw new RequestFailed(status, undefined);
  return ok;
}

/**
 * Sends a request. If the service answers 401, renews the session and sends the request once more. A 401 is normal, because an access token
 * lives for one hour, but a session for eight hours.
 */
export async function withSession(request: Request): Promise<Response> {
  const again = request.clone();
  const response = await send(request);
  return response.status === 401 && (await renewSession()) ? send(again) : response;
}

/** Thrown if the service has refused a request or could not answer it. The message is for the user. */
export class RequestFailed extends Error {
  readonly status: number;
  /** The faults in the fields of the request. Empty if the request was refused for another reason. */
  readonly faults: readonly FieldFault[];

  constructor(status: number, problem: Problem | undefined) {
    const faults = faultsIn(problem);
    super(textOf(status, problem, faults));
    this.name = "RequestFailed";
    this.status = status;
    this.faults = faults;
  }
}

function textOf(status: number, problem: Problem | undefined, faults: readonly FieldFault[]): string {
  if (faults.length > 0) {
    return faults.map(({ field, text }) => (field === "" ? text : `${field}: ${text}`)).join(" ");
  }
  if (problem?.code === "request_in_progress") {
    return "The service is still executing your first attempt. Wait a moment and try again.";
  }
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
 * present page. After any other response, throws RequestFailed.
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

/**
 * Ends the session, calls `forget` to delete the user's data from this device, and leaves the page. If the session could not be ended,
 * throws an error whose message says so, and does not call `forget`.
 */
export async function signOut(forget: () => Promise<void>): Promise<void> {
  let logoutUrl: unknown;
  try {
    const response = await send(new Request("/api/session/logout", { method: "POST", headers: SAME_SITE }));
    if (!response.ok) throw new RequestFailed(response.status, undefined);
    if (response.status === 200) ({ logoutUrl } = await response.json());
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : "";
    throw new Error(`You are still signed in. ${reason}`, { cause });
  }
  await forget();
  location.assign(typeof logoutUrl === "string" ? logoutUrl : "/");
}
