/**
 * The identity provider, which manages users and their token subjects. A deployment has either a Cognito user pool, which mails the
 * invitations, or `directoryOnly`, which sends no mail.
 */
import { randomUUID } from "node:crypto";
import type { CognitoIdentityProviderClient } from "@aws-sdk/client-cognito-identity-provider";
import {
  cognitoClient,
  createPoolUser,
  findPoolUser,
  type PoolUser,
  removePoolUser,
  resendInvitation,
} from "#shared/aws/cognito.ts";
import { setting } from "#shared/config.ts";

export interface IdentityProvider {
  /** True if the inviter may choose the token subject, because another system manages the users. */
  readonly takesSubjects: boolean;
  /**
   * Minimum duration of an invitation request, in milliseconds. If a user of another company already has the e-mail address, the service
   * does not call the provider and could respond sooner. Without a minimum, this shorter time would reveal that the address is in use.
   */
  readonly answersAfterMs: number;
  /**
   * Registers the e-mail address and returns the user's token subject (the `sub` of the user's tokens). A repeated call resumes an
   * interrupted registration. `known` is the token subject that the user had before this invitation.
   */
  invite(email: string, known?: string): Promise<{ readonly sub: string }>;
  /** Withdraws an invitation. Does nothing if the user is unknown or has already signed in. */
  withdraw(email: string): Promise<void>;
}

/**
 * The provider for deployments with an external token issuer, where another system manages the users. It returns the subject `known` or a
 * random one, and sends no mail.
 */
export const directoryOnly: IdentityProvider = {
  takesSubjects: true,
  answersAfterMs: 0,
  invite: async (_, known) => ({ sub: known ?? randomUUID() }),
  withdraw: async () => undefined,
};

/**
 * Minimum duration of an invitation request, in milliseconds (see `answersAfterMs`). A user pool usually creates a user and
 * sends the mail in less time.
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

/** Returns the identity provider of this deployment. */
export function identityProvider(): IdentityProvider {
  if (made === undefined) {
    const userPoolId = setting("USER_POOL_ID");
    made = userPoolId === undefined ? directoryOnly : userPool(userPoolId);
  }
  return made;
}
