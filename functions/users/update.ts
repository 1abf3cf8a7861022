/** PATCH /api/users/{id}: changes a user's name, role or permissions. */

import { identityProvider } from "#shared/auth/identity-provider-configured.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { changeUser } from "#shared/reference/change-user.ts";
import { presentUser } from "#shared/reference/invite.ts";
import { User, UserPatch } from "#shared/reference/user.ts";

export const handler = endpoint(
  {
    summary: "Change a user",
    description:
      "Only sent fields change; rights follow within a minute. Only an owner changes an owner, and nobody lowers their own role or disables themselves. `isActive` brings a disabled user back, and sends an invitation that was withdrawn or has expired once more.",
    tag: "Users",
    allow: "admin",
    path: IdPath,
    body: UserPatch,
    status: 200,
    response: User,
  },
  async ({ context, caller, path, body }) =>
    presentUser(await changeUser(context, identityProvider(), caller, path.id, body), context.clock.now()),
);
