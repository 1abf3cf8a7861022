/** POST /api/session/logout: ends a session of the console. */
import { sessionEndpoint } from "#shared/sessions/endpoint.ts";
import { logOutFromConsole } from "#shared/sessions/sign-in.ts";

export const handler = sessionEndpoint(
  {
    summary: "Sign out of the console",
    description:
      "Deletes the session and its cookie. Requests with the id of the session are refused within 60 seconds, because API Gateway caches the authorizer's answer. Needs the header `X-Requested-With: canvassing-console`.",
    answers: {
      200: { description: "Signed out. The page at `logoutUrl` also ends the session at the identity provider." },
      204: { description: "Signed out. The identity provider has no page for signing out." },
    },
    problems: [400, 403, 404],
  },
  logOutFromConsole,
);
