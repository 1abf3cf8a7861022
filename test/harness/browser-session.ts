/** An HTTP client that stores cookies as a browser does. Tests sign in to the console with it. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { type Answer, answerOf, assertDocumented, baseUrl } from "./client.ts";

export interface Visit extends Answer {
  readonly url: string;
  readonly setCookies: readonly string[];
}

interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface SignIn {
  readonly returnTo?: string;
  readonly accessSeconds?: number;
}

/** The header that the console's scripts send with each request. Without it, a session cookie has no effect, which prevents CSRF. */
export const FROM_CONSOLE = { "X-Requested-With": "canvassing-console" } as const;

export type Browser = ReturnType<typeof newBrowser>;

export function newBrowser(cookies = new Map<string, string>()) {
  /** Sends one request with the stored cookies, and stores the cookies of the answer. Does not follow a redirect. */
  async function send(path: string, { method = "GET", headers = {}, body = "" }: Sent = {}): Promise<Visit> {
    const url = new URL(path, baseUrl());
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const bytes = Buffer.from(body);
    const sent = request(url, {
      method,
      headers: {
        ...(cookie !== "" && { Cookie: cookie }),
        ...(bytes.length > 0 && { "Content-Length": bytes.length }),
        ...headers,
      },
    }).end(bytes);
    const [response]: IncomingMessage[] = await once(sent, "response");
    if (response === undefined) throw new Error("no response");
    const answer = await answerOf(response);
    const visit = { ...answer, url: url.href, setCookies: answer.headers.getSetCookie() };
    for (const line of visit.setCookies) keep(cookies, line);
    assertDocumented(method, url.pathname, visit);
    return visit;
  }
  /** Signs in through the pages of the local token issuer. Returns the URL of the callback, without requesting it. */
  async function callbackOf(email: string, { returnTo, accessSeconds }: SignIn = {}): Promise<string> {
    const query = returnTo === undefined ? "" : `?returnTo=${encodeURIComponent(returnTo)}`;
    const login = await send(`/api/session/login${query}`);
    const form = new URLSearchParams({ email, ...(accessSeconds !== undefined && { expires_in: `${accessSeconds}` }) });
    const chosen = await send(locationOf(login), {
      method: "POST",
      headers: { "Content-Type": "application/x-www-form-urlencoded" },
      body: form.toString(),
    });
    return locationOf(chosen);
  }
  return {
    cookies,
    send,
    /** Sends a request to the API as the console's scripts do. */
    call: (method: string, path: string, body?: unknown) =>
      send(path, {
        method,
        headers: { ...FROM_CONSOLE, ...(body !== undefined && { "Content-Type": "application/json" }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    callbackOf,
    /** Signs in through the pages of the local token issuer, requests the callback, and returns the answer of the callback. */
    signIn: async (email: string, options?: SignIn) => send(await callbackOf(email, options)),
  };
}

export function locationOf({ status, headers, text: body }: Answer): string {
  const location = headers.get("location");
  if (location === null) throw new Error(`the answer ${status} has no Location: ${body}`);
  return location;
}

function keep(cookies: Map<string, string>, line: string): void {
  const [pair = "", ...attributes] = line.split(";").map((part) => part.trim());
  const at = pair.indexOf("=");
  const name = pair.slice(0, at);
  if (attributes.includes("Max-Age=0")) cookies.delete(name);
  else cookies.set(name, pair.slice(at + 1));
}
