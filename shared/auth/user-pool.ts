/** A Cognito user pool as identity provider: Cognito mails the invitation with a temporary password. */
import {
  AdminCreateUserCommand,
  AdminDeleteUserCommand,
  AdminGetUserCommand,
  type AttributeType,
  type CognitoIdentityProviderClient,
  UserNotFoundException,
  UsernameExistsException,
  UserStatusType,
} from "@aws-sdk/client-cognito-identity-provider";
import type { IdentityProvider } from "#shared/auth/identity-provider.ts";
import { cognitoClient } from "#shared/aws/cognito.ts";

/** Longer than the pool usually takes to make a user and to mail. */
const ANSWERS_AFTER_MS = 2_000;

const INVITED = UserStatusType.FORCE_CHANGE_PASSWORD;

export function userPool(UserPoolId: string, pool: CognitoIdentityProviderClient = cognitoClient()): IdentityProvider {
  /** The pool knows the user from an earlier attempt; an invitation that was not accepted is mailed again. */
  async function inviteAgain(email: string): Promise<AttributeType[]> {
    const user = { UserPoolId, Username: email };
    const { UserStatus, UserAttributes = [] } = await pool.send(new AdminGetUserCommand(user));
    if (UserStatus === INVITED) await pool.send(new AdminCreateUserCommand({ ...user, MessageAction: "RESEND" }));
    return UserAttributes;
  }

  async function create(email: string): Promise<AttributeType[]> {
    const UserAttributes = [
      { Name: "email", Value: email },
      { Name: "email_verified", Value: "true" },
    ];
    try {
      const command = new AdminCreateUserCommand({ UserPoolId, Username: email, UserAttributes });
      return (await pool.send(command)).User?.Attributes ?? [];
    } catch (error) {
      if (error instanceof UsernameExistsException) return inviteAgain(email);
      throw error;
    }
  }

  return {
    takesSubjects: false,
    answersAfterMs: ANSWERS_AFTER_MS,
    invite: async (email) => {
      const sub = (await create(email)).find(({ Name }) => Name === "sub")?.Value;
      if (sub === undefined) throw new Error("the user pool gave the user no subject");
      return { sub };
    },
    withdraw: async (email) => {
      const user = { UserPoolId, Username: email };
      try {
        const { UserStatus } = await pool.send(new AdminGetUserCommand(user));
        if (UserStatus === INVITED) await pool.send(new AdminDeleteUserCommand(user));
      } catch (error) {
        if (!(error instanceof UserNotFoundException)) throw error;
      }
    },
  };
}
