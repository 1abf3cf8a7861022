/** PATCH /api/users/{id}: changes a user's name, role or permissions. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { identityProvider } from "#shared/identity/configured.ts";
import { changeUser } from "#shared/users/access.ts";
import { presentUser } from "#shared/users/invitation.ts";
import { User, UserPatch } from "#shared/users/user.ts";

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
  async ({ world, caller, path, body }) =>
    presentUser(await changeUser(world, identityProvider(), caller, path.id, body), world.clock.now()),
);
