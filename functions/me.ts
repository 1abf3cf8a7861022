/** GET /api/me: the caller with company, role and permissions. */
import { Me, readMe } from "#shared/companies/me.ts";
import { endpoint } from "#shared/http/endpoint.ts";

export const handler = endpoint(
  {
    summary: "The signed-in user",
    description: "User, company, role and permissions behind the access token.",
    tag: "Users",
    allow: "everyone",
    status: 200,
    response: Me,
  },
  ({ world, caller }) => readMe(world, caller),
);
