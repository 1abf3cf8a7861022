/** DELETE /api/users/{id}: disables a user. */
import { endpoint } from "#shared/http/endpoint.ts";
import { Deleted, IdPath } from "#shared/http/paths.ts";
import { disableUser } from "#shared/users/write.ts";

export const handler = endpoint(
  {
    summary: "Disable a user",
    description: "Within a minute every token of the user is refused. Prospects and territories stay as they are.",
    tag: "Users",
    allow: "admin",
    path: IdPath,
    status: 200,
    response: Deleted,
  },
  async ({ world, caller, path }) => {
    await disableUser(world, caller, path.id);
    return { id: path.id };
  },
);
