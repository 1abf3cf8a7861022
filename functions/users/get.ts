/** GET /api/users/{id}: one user of the company. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { User } from "#shared/users/schema.ts";
import { getUser } from "#shared/users/users.ts";

export const handler = endpoint(
  { summary: "Get a user", tag: "Users", allow: "everyone", path: IdPath, status: 200, response: User },
  ({ world, caller, path }) => getUser(world, caller.companyId, path.id),
);
