/** A Cognito user pool as identity provider: Cognito mails the invitation with a temporary password. */
import {
  AdminCreateUserCommand,
  AdminGetUserCommand,
  type AttributeType,
  CognitoIdentityProviderClient,
  UsernameExistsException,
} from "@aws-sdk/client-cognito-identity-provider";
import type { IdentityProvider } from "#shared/identity/provider.ts";

/** Every call ends in time for the function to answer. */
const client = () =>
  new CognitoIdentityProviderClient({
    maxAttempts: 3,
    requestHandler: { connectionTimeout: 1_000, requestTimeout: 5_000, throwOnRequestTimeout: true },
  });

export function userPool(UserPoolId: string, pool = client()): IdentityProvider {
  /** The pool knows the user from an earlier try; an invitation that nobody took up is mailed anew. */
  async function inviteAgain(email: string): Promise<AttributeType[] | undefined> {
    const known = await pool.send(new AdminGetUserCommand({ UserPoolId, Username: email }));
    if (known.UserStatus === "FORCE_CHANGE_PASSWORD") {
      await pool.send(new AdminCreateUserCommand({ UserPoolId, Username: email, MessageAction: "RESEND" }));
    }
    return known.UserAttributes;
  }

  return {
    takesSubjects: false,
    invite: async (email) => {
      const UserAttributes = [
        { Name: "email", Value: email },
        { Name: "email_verified", Value: "true" },
      ];
      const attributes = await pool
        .send(new AdminCreateUserCommand({ UserPoolId, Username: email, UserAttributes }))
        .then(({ User }) => User?.Attributes)
        .catch((error: unknown) => {
          if (error instanceof UsernameExistsException) return inviteAgain(email);
          throw error;
        });
      const sub = attributes?.find(({ Name }) => Name === "sub")?.Value;
      if (sub === undefined) throw new Error("the user pool gave the user no subject");
      return { sub };
    },
  };
}
