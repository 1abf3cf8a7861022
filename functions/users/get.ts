/** GET /api/users/{id}: one user of the company. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { presentUser } from "#shared/users/invitation.ts";
import { User } from "#shared/users/user.ts";
import { getUser } from "#shared/users/users.ts";

export const handler = endpoint(
  { summary: "Get a user", tag: "Users", allow: "everyone", path: IdPath, status: 200, response: User },
  async ({ world, caller, path }) => presentUser(await getUser(world, caller.companyId, path.id), world.clock.now()),
);
