/** The two requests of the console's scripts, which refresh or end its session. */
import { unauthenticated } from "#shared/auth/token.ts";
import { assertFromConsole, type SessionAnswer, type SessionCall } from "#shared/sessions/endpoint.ts";
import { signOutUrl } from "#shared/sessions/issuer.ts";
import { isSessionId } from "#shared/sessions/session-id.ts";
import { endSession, refreshSession } from "#shared/sessions/sessions.ts";

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
  // The session has already ended, even if the issuer cannot be reached.
  const logoutUrl = await signOutUrl(client, `${origin}/`).catch(() => undefined);
  return logoutUrl === undefined
    ? { status: 204, setCookies }
    : { status: 200, setCookies, mediaType: "application/json", body: JSON.stringify({ logoutUrl }) };
}
