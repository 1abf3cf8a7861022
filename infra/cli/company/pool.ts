/** The users of a deployment's user pool. */
import type { CognitoIdentityProviderClient } from "@aws-sdk/client-cognito-identity-provider";
import { findPoolUser, removePoolUser } from "#shared/aws/cognito.ts";

export interface PoolUser {
  readonly email: string;
  readonly sub: string;
}

/** Resolves with true if the pool has a user with this address and this subject. Another company's user may have the same address. */
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
