/** The authorizer of API Gateway. It verifies the access token of the request, or of the request's console session, and finds the user. */
import { authorizer } from "#shared/auth/authorizer.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { verifiedSubject } from "#shared/auth/token.ts";
import { useKeyService } from "#shared/secrets/key-service.ts";
import { sessionIdOf } from "#shared/sessions/session-id.ts";
import { callerOfSession } from "#shared/sessions/stored.ts";

useKeyService();

/** API Gateway already caches the result for 60 s, and a second cache would let revoked rights work longer. */
export const handler = authorizer(async (context, authorization) => {
  const sessionId = sessionIdOf(authorization);
  if (sessionId !== undefined) return callerOfSession(context, sessionId);
  return lookUpCaller(context, await verifiedSubject(authorization));
});
