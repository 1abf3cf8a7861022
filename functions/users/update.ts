/** PATCH /api/users/{id}: changes a user's name, role or permissions. */
import { endpoint } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import { User, UserPatch } from "#shared/users/schema.ts";
import { updateUser } from "#shared/users/write.ts";

export const handler = endpoint(
  {
    summary: "Change a user",
    description:
      "Only sent fields change; rights follow within a minute. Only an owner changes an owner, and nobody lowers their own role or disables themselves. `isActive` brings a disabled user back.",
    tag: "Users",
    allow: "admin",
    path: IdPath,
    body: UserPatch,
    status: 200,
    response: User,
  },
  ({ world, caller, path, body }) => updateUser(world, caller, path.id, body),
);
