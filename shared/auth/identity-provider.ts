/** The identity provider, which manages users and their token subjects. A Cognito user pool mails invitations; `directoryOnly` does not. */
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
import { oncePerInstance } from "#shared/instance.ts";

export interface IdentityProvider {
  /** True if another system manages the users. The inviter may then choose the token subject. */
  readonly takesSubjects: boolean;
  /** Minimum milliseconds of an invitation request. A shorter time would reveal that another company has the e-mail address. */
  readonly answersAfterMs: number;
  /** Creates the user and sends the mail, or sends the mail again. `known` is the token subject that an earlier call has returned. */
  invite(email: string, known?: string): Promise<{ readonly sub: string }>;
  /** Removes an invited user. Does nothing if the user is unknown or has already signed in. */
  withdraw(email: string): Promise<void>;
}

/** For an external token issuer, where another system manages the users. Sends no mail. */
export const directoryOnly: IdentityProvider = {
  takesSubjects: true,
  answersAfterMs: 0,
  invite: async (_, known) => ({ sub: known ?? randomUUID() }),
  withdraw: async () => undefined,
};

/** Minimum milliseconds of an invitation request. A user pool usually needs less time to create a user and send the mail. */
const ANSWERS_AFTER_MS = 2_000;

export function userPool(id: string, client: CognitoIdentityProviderClient = cognitoClient()): IdentityProvider {
  const pool = { id, client };

  /** Sends the invitation mail again, unless the user has already accepted. */
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

export const identityProvider = /* @__PURE__ */ oncePerInstance((): IdentityProvider => {
  const userPoolId = setting("USER_POOL_ID");
  return userPoolId === undefined ? directoryOnly : userPool(userPoolId);
});
