/** POST /api/users: invites a user into the company. */
import { endpoint } from "#shared/http/endpoint.ts";
import { identityProvider } from "#shared/identity/configured.ts";
import { NewUser, User } from "#shared/users/schema.ts";
import { createUser } from "#shared/users/write.ts";

export const handler = endpoint(
  {
    summary: "Invite a user",
    description:
      "The identity provider tells the user how to sign in. An e-mail address belongs to one user of the whole service, and so does a subject. Where the issuer is not the deployment's own user pool, `sub` names the subject of the user's tokens; the user pool names its subjects itself and refuses it. Only an owner makes owners.",
    tag: "Users",
    allow: "admin",
    body: NewUser,
    status: 201,
    response: User,
  },
  ({ world, caller, body }) => createUser(world, identityProvider(), caller, body),
);
