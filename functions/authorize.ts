/** The authorizer of API Gateway. It verifies the access token, API key or console session of the request, and finds the user. */
import { keyIn } from "#shared/auth/api-key.ts";
import { authorizer } from "#shared/auth/authorizer.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { callerOfKey } from "#shared/auth/key-caller.ts";
import { verifiedSubject } from "#shared/auth/token.ts";
import { useKeyService } from "#shared/secrets/key-service.ts";
import { sessionIdOf } from "#shared/sessions/session-id.ts";
import { callerOfSession } from "#shared/sessions/stored.ts";

useKeyService();

/** Reads the rights in each call, because API Gateway caches the result for 60 s, and a second cache would keep revoked rights longer. */
export const handler = authorizer(async (context, authorization) => {
  const sessionId = sessionIdOf(authorization);
  if (sessionId !== undefined) return callerOfSession(context, sessionId);
  const key = keyIn(authorization);
  if (key !== undefined) return callerOfKey(context, key);
  return lookUpCaller(context, await verifiedSubject(authorization));
});
