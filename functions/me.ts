/** GET /api/me: returns the signed-in user with company, role and permissions. */
import { endpoint } from "#shared/http/endpoint.ts";
import { Me, readMe } from "#shared/reference/me.ts";

export const handler = endpoint(
  {
    summary: "The signed-in user",
    description: "The user of the access token, with company, role and effective permissions.",
    allow: "everyone",
    scope: "none",
    response: Me,
  },
  ({ context, caller }) => readMe(context, caller),
);
