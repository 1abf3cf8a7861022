/** GET /api/users/{id}: reads one user of the company. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { presentUser } from "#shared/reference/invite.ts";
import { User } from "#shared/reference/user.ts";
import { getUser } from "#shared/reference/users.ts";

export const handler = endpoint(
  { summary: "Get a user", allow: "everyone", scope: "prospects:read", path: IdPath, response: User },
  async ({ context, caller, path }) =>
    presentUser(await getUser(context, caller.companyId, path.id), context.clock.now()),
);
