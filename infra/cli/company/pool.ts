/** Checks and removes users in the user pool of a deployment. */
import {
  AdminDeleteUserCommand,
  AdminGetUserCommand,
  type CognitoIdentityProviderClient,
  UserNotFoundException,
} from "@aws-sdk/client-cognito-identity-provider";

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

export function poolAt(UserPoolId: string, client: CognitoIdentityProviderClient): Pool {
  const has: HasUser = async ({ email, sub }) => {
    try {
      const { UserAttributes = [] } = await client.send(new AdminGetUserCommand({ UserPoolId, Username: email }));
      return UserAttributes.some(({ Name, Value }) => Name === "sub" && Value === sub);
    } catch (error) {
      if (error instanceof UserNotFoundException) return false;
      throw error;
    }
  };
  return {
    has,
    remove: async (user) => {
      if (!(await has(user))) return;
      try {
        await client.send(new AdminDeleteUserCommand({ UserPoolId, Username: user.email }));
      } catch (error) {
        if (!(error instanceof UserNotFoundException)) throw error;
      }
    },
  };
}
