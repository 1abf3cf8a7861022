/** Finds the caller of a request with the id of a session. */
import type { Caller } from "#shared/auth/caller.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { subjectOfToken, TokenRefused, unauthenticated } from "#shared/auth/token.ts";
import type { ApiContext } from "#shared/context.ts";
import { digestOf } from "#shared/sessions/session-id.ts";
import { openTokens, readSession, type StoredSession } from "#shared/sessions/stored.ts";

/**
 * Returns the caller as for a request with a bearer token. Throws `unauthenticated` if the session is unknown or has ended, or its token is
 * refused. API Gateway does not cache this, because a refresh may make the session valid again.
 */
export async function callerOfSession(context: ApiContext, sessionId: string): Promise<Caller> {
  const digest = digestOf(sessionId);
  const session = await readSession(context, digest);
  if (session === undefined) throw unauthenticated("The session is unknown or has ended.");
  const { access } = await openTokens(context.secrets, digest, session);
  const sub = await subjectOfToken(access, [session.clientId]).catch((error: unknown) => {
    throw error instanceof TokenRefused ? unauthenticated(`The token of the session: ${error.reason}.`) : error;
  });
  return assertOwner(session, await lookUpCaller(context, sub));
}

/** Throws `unauthenticated` unless `caller`, who has the token's subject now, began the session. */
export function assertOwner({ companyId, userId }: StoredSession, caller: Caller): Caller {
  if (caller.companyId !== companyId || caller.userId !== userId) {
    throw unauthenticated("The session belongs to another user.");
  }
  return caller;
}
