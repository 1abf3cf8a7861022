/**
 * Creates the identity provider of this deployment. It is either a Cognito user pool, which mails the invitations, or `directoryOnly`,
 * which sends no mail.
 */
import type { CognitoIdentityProviderClient } from "@aws-sdk/client-cognito-identity-provider";
import { directoryOnly, type IdentityProvider } from "#shared/auth/identity-provider.ts";
import {
  cognitoClient,
  createPoolUser,
  findPoolUser,
  type PoolUser,
  removePoolUser,
  resendInvitation,
} from "#shared/aws/cognito.ts";
import { setting } from "#shared/config.ts";

/**
 * Minimum duration of an invitation request, in milliseconds (see `answersAfterMs` in identity-provider.ts). A user pool usually creates a
 * user and sends the mail in less time.
 */
const ANSWERS_AFTER_MS = 2_000;

export function userPool(id: string, client: CognitoIdentityProviderClient = cognitoClient()): IdentityProvider {
  const pool = { id, client };

  /** Invites a user who is already in the user pool. The pool sends the mail again, unless the user has already accepted the invitation. */
  async function inviteAgain(email: string): Promise<PoolUser | undefined> {
    const user = await findPoolUser(pool, email);
    if (user?.isInvited) await resendInvitation(pool, email);
    return user;
  }

  return {
    takesSubjects: false,
    answersAfterMs: ANSWERS_AFTER_MS,
    invite: async (email) => {
      const user = (await createPoolUser(pool, email, { mail: true })) ?? (await inviteAgain(email));
      if (user?.sub === undefined) throw new Error("the user pool gave the user no subject");
      return { sub: user.sub };
    },
    withdraw: async (email) => {
      if ((await findPoolUser(pool, email))?.isInvited) await removePoolUser(pool, email);
    },
  };
}

let made: IdentityProvider | undefined;

export function identityProvider(): IdentityProvider {
  if (made === undefined) {
    const userPoolId = setting("USER_POOL_ID");
    made = userPoolId === undefined ? directoryOnly : userPool(userPoolId);
  }
  return made;
}
