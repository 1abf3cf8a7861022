/** The sign-in of the console (the redirect to the identity provider and the return), and refresh and sign-out. */
import * as z from "zod/mini";
import { unauthenticated } from "#shared/auth/token.ts";
import { ApiError } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { log } from "#shared/log.ts";
import { assertFromConsole, type SessionAnswer, type SessionCall } from "#shared/sessions/endpoint.ts";
import { exchangeCode, newChallenge, SignInRefused, signInUrl, signOutUrl } from "#shared/sessions/issuer.ts";
import { digestOf, isSessionId } from "#shared/sessions/session-id.ts";
import { beginSession, endSession, refreshSession } from "#shared/sessions/sessions.ts";

/** The sign-in that has begun. It is stored in a cookie: only this browser can complete it, which protects against login CSRF. */
const SignIn = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  returnTo: z.string(),
  /** The digest of the browser's earlier session, which ends when this sign-in is complete. */
  previous: z.optional(z.string()),
});
type SignIn = z.infer<typeof SignIn>;

export async function beginSignIn({ request, client, cookies }: SessionCall): Promise<SessionAnswer> {
  const challenge = newChallenge();
  const [returnTo, ...others] = request.queryParameters.get("returnTo") ?? [];
  const sessionId = cookies.session.read(request);
  const begun: SignIn = {
    ...challenge,
    returnTo: others.length > 0 ? "/" : safeReturnTo(returnTo),
    ...(sessionId !== undefined && isSessionId(sessionId) && { previous: digestOf(sessionId) }),
  };
  const value = Buffer.from(JSON.stringify(begun)).toString("base64url");
  return {
    status: 302,
    location: await signInUrl(client, challenge),
    setCookies: [cookies.signIn.set(value)],
  };
}

export async function completeSignIn(call: SessionCall): Promise<SessionAnswer> {
  const { context, request, client, cookies } = call;
  const begun = signInOf(cookies.signIn.read(request));
  if (begun === undefined) return refusal(call, 400, "The sign-in has expired, or began in another browser.");
  try {
    const tokens = await exchangeCode(client, returnedParameters(call), begun);
    const { id, caller } = await beginSession(context(), client.clientId, tokens, begun.previous);
    log.info("signed in", { companyId: caller.companyId, userId: caller.userId });
    return {
      status: 302,
      location: safeReturnTo(begun.returnTo),
      setCookies: [cookies.session.set(id), cookies.signIn.clear],
    };
  } catch (error) {
    if (error instanceof SignInRefused) {
      log.info("sign-in refused", { reason: error.message });
      return refusal(call, 400, "The sign-in was not completed.");
    }
    if (!(error instanceof ApiError) || error.code !== "unauthenticated") throw error;
    log.info("sign-in refused", { reason: error.message });
    return refusal(call, 403, "Your account has no access to this service.");
  }
}

function signInOf(cookie: string | undefined): SignIn | undefined {
  try {
    return SignIn.parse(JSON.parse(Buffer.from(cookie ?? "", "base64url").toString("utf8")));
  } catch {
    return undefined;
  }
}

function returnedParameters({ request }: SessionCall): URLSearchParams {
  const returned = new URLSearchParams();
  for (const [name, values] of request.queryParameters) for (const value of values) returned.append(name, value);
  return returned;
}

/** Returns an HTML page, because the browser shows it to the user. The page contains no text from the request. */
const refusal = ({ cookies }: SessionCall, status: 400 | 403, text: string): SessionAnswer => ({
  status,
  mediaType: "text/html; charset=utf-8",
  setCookies: [cookies.signIn.clear],
  body: `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sign-in</title></head>
<body><main><h1>Sign-in</h1><p>${text}</p><p><a href="/api/session/login">Sign in</a></p></main></body>
</html>
`,
});

/** The base URL against which `safeReturnTo` resolves a text. If the result has another origin, the text was no path. */
const BASE = "https://console.invalid";

/** Returns `/` for every text that is no path of the console: another origin, a path of the API, or a character outside ASCII. */
function safeReturnTo(text: string | undefined): string {
  if (text === undefined || text.length > limits.returnTo || !/^\/(?!\/)[\x21-\x7e]*$/.test(text)) return "/";
  if (text.includes("\\") || !URL.canParse(text, BASE)) return "/";
  const { origin, pathname, search, hash } = new URL(text, BASE);
  if (origin !== BASE || pathname.startsWith("//") || pathname.startsWith("/api/")) return "/";
  return `${pathname}${search}${hash}`;
}

export async function refreshFromConsole({ context, request, client, cookies }: SessionCall): Promise<SessionAnswer> {
  assertFromConsole(request);
  const sessionId = cookies.session.read(request);
  if (sessionId === undefined || !isSessionId(sessionId)) throw unauthenticated("There is no session. Sign in.");
  const { id } = await refreshSession(context(), client, sessionId);
  return { status: 204, ...(id !== undefined && { setCookies: [cookies.session.set(id)] }) };
}

export async function logOutFromConsole({
  context,
  request,
  client,
  origin,
  cookies,
}: SessionCall): Promise<SessionAnswer> {
  assertFromConsole(request);
  const sessionId = cookies.session.read(request);
  if (sessionId !== undefined && isSessionId(sessionId)) await endSession(context(), sessionId);
  const setCookies = [cookies.session.clear];
  // The session has ended, even if the issuer cannot be reached for the URL of its sign-out page.
  const logoutUrl = await signOutUrl(client, `${origin}/`).catch(() => undefined);
  return logoutUrl === undefined
    ? { status: 204, setCookies }
    : { status: 200, setCookies, mediaType: "application/json", body: JSON.stringify({ logoutUrl }) };
}
