/** POST /api/session/refresh: gives a session new tokens and a new id if its access token has expired or will expire soon. */
import { useKeyService } from "#shared/secrets/key-service.ts";
import { sessionEndpoint } from "#shared/sessions/endpoint.ts";
import { refreshFromConsole } from "#shared/sessions/sign-in.ts";

useKeyService();

export const handler = sessionEndpoint(
  {
    summary: "Refresh a session of the console",
    description:
      "Call it after a 401, and repeat the refused request after a 204. If the access token of the session has expired or expires within five minutes, the session gets new tokens and a new id. The end of the session does not change. Concurrent calls refresh the session once. Needs the cookie of the session and the header `X-Requested-With: canvassing-console`.",
    answers: { 204: { description: "The session is valid. A new id is in the cookie." } },
    problems: [400, 401, 403, 404],
  },
  refreshFromConsole,
);
