/** POST /api/users: invites a user into the company. */
import { identityProvider } from "#shared/auth/identity-provider.ts";
import { command } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";
import { createUser } from "#shared/reference/invite.ts";
import { NewUser, User } from "#shared/reference/user.ts";

export const handler = command(
  {
    summary: "Invite a user",
    description: `The identity provider sends the user a mail with instructions for signing in. The invitation is \`pending\` until the user's first request and expires after ${limits.invitationMs / 86_400_000} days. \`DELETE /api/users/{id}\` withdraws it. An e-mail address belongs to one user of the whole service. The answer does not reveal whether another company has the address: it looks the same, but no mail is sent and the invitation cannot be accepted. A new invitation succeeds once the address is available again. A company may send ${limits.invitationsPerDay} invitations a day (UTC). Above that the answer is 429. With an issuer other than the deployment's own user pool, \`sub\` is the subject of the user's tokens, which also belongs to one user of the whole service. The user pool assigns subjects itself, so \`sub\` is refused there. Only owners can create owners.`,
    allow: "admin",
    scope: "users:manage",
    body: NewUser,
    status: 201,
    response: User,
  },
  ({ context, caller, body }) => createUser(context, identityProvider(), caller, body),
);
