/** POST /api/users: invites a user into the company. */

import { identityProvider } from "#shared/auth/identity-provider-configured.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { limits } from "#shared/limits.ts";
import { createUser, presentUser } from "#shared/reference/invite.ts";
import { NewUser, User } from "#shared/reference/user.ts";

export const handler = endpoint(
  {
    summary: "Invite a user",
    description: `The identity provider tells the user how to sign in. The invitation is \`pending\` until the user's first request and ends after ${limits.invitationMs / 86_400_000} days; \`DELETE /api/users/{id}\` withdraws it before. An e-mail address belongs to one user of the whole service. The answer does not say whether somebody elsewhere has it: it is the same, but no mail is sent and nobody can take the invitation up. Once the address is free, an invitation made anew goes through. At most ${limits.invitationsPerDay} invitations of a company a day (UTC), then 429. Where the issuer is not the deployment's own user pool, \`sub\` names the subject of the user's tokens, which belongs to one user of the whole service as well; the user pool names its subjects itself and refuses it. Only an owner makes owners.`,
    tag: "Users",
    allow: "admin",
    body: NewUser,
    status: 201,
    response: User,
  },
  async ({ context, caller, body }) =>
    presentUser(await createUser(context, identityProvider(), caller, body), context.clock.now()),
);
