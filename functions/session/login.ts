/** GET /api/session/login: sends the browser to the sign-in page of the identity provider. */
import { sessionEndpoint } from "#shared/sessions/endpoint.ts";
import { beginSignIn } from "#shared/sessions/sign-in.ts";

export const handler = sessionEndpoint(
  {
    summary: "Sign in to the console",
    description:
      "Browsers open this address as a page. The answer redirects to the identity provider (authorization code flow with PKCE) and sets a short-lived cookie, without which the sign-in cannot be completed.",
    query: {
      returnTo: "The path of the console to return to, with its query. Anything else than such a path means `/`.",
    },
    answers: { 302: { description: "Redirects to the identity provider." } },
    problems: [400, 404],
  },
  beginSignIn,
);
