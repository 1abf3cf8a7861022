/** GET /api/session/callback: completes a sign-in, stores the session and sets its cookie. */
import { useKeyService } from "#shared/secrets/key-service.ts";
import { sessionEndpoint } from "#shared/sessions/endpoint.ts";
import { completeSignIn } from "#shared/sessions/sign-in.ts";

useKeyService();

export const handler = sessionEndpoint(
  {
    summary: "Complete a sign-in to the console",
    description:
      "The identity provider sends the browser here. The service exchanges the code for tokens, which the browser never sees. It sets the cookie of a new session, which ends after 8 hours, and returns to the console.",
    query: {
      code: "The authorization code.",
      state: "The state of the sign-in. It must be the one that this browser began with.",
      error: "The error of the identity provider, instead of a code.",
      iss: "The issuer, from providers that send it.",
    },
    answers: {
      302: { description: "Signed in. Redirects to the console." },
      400: {
        description: "The sign-in has expired, belongs to another browser, or was refused.",
        mediaType: "text/html",
      },
      403: { description: "The user is unknown or disabled.", mediaType: "text/html" },
    },
    problems: [404],
  },
  completeSignIn,
);
