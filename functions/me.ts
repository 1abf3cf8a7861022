/** GET /api/me: the caller with company, role and permissions. */

import { endpoint } from "#shared/http/endpoint.ts";
import { Me, readMe } from "#shared/reference/users.ts";

export const handler = endpoint(
  {
    summary: "The signed-in user",
    description: "User, company, role and permissions behind the access token.",
    tag: "Users",
    allow: "everyone",
    status: 200,
    response: Me,
  },
  ({ context, caller }) => readMe(context, caller),
);
