/** Checks and removes users in the user pool of a deployment. */
import type { CognitoIdentityProviderClient } from "@aws-sdk/client-cognito-identity-provider";
import { findPoolUser, removePoolUser } from "#shared/aws/cognito.ts";

export interface PoolUser {
  readonly email: string;
  readonly sub: string;
}

/**
 * Returns true if the user pool contains this user with this subject. The e-mail address alone does not identify the user, because another
 * company's user may have the same address.
 */
export type HasUser = (user: PoolUser) => Promise<boolean>;

export interface Pool {
  readonly has: HasUser;
  remove(user: PoolUser): Promise<void>;
}

export function poolAt(id: string, client: CognitoIdentityProviderClient): Pool {
  const pool = { id, client };
  const has: HasUser = async ({ email, sub }) => (await findPoolUser(pool, email))?.sub === sub;
  return {
    has,
    remove: async (user) => {
      if (await has(user)) await removePoolUser(pool, user.email);
    },
  };
}
