/**
 * Creates the identity provider of this deployment. It is either a Cognito user pool, which mails the invitations, or `directoryOnly`,
 * which sends no mail.
 */
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
import { directoryOnly, type IdentityProvider } from "#shared/auth/identity-provider.ts";
import { cognitoClient } from "#shared/aws/cognito.ts";
import { setting } from "#shared/config.ts";

/**
 * Minimum duration of an invitation request, in milliseconds (see `answersAfterMs` in identity-provider.ts). A user pool usually creates a
 * user and sends the mail in less time.
 */
const ANSWERS_AFTER_MS = 2_000;

const INVITED = UserStatusType.FORCE_CHANGE_PASSWORD;

export function userPool(UserPoolId: string, pool: CognitoIdentityProviderClient = cognitoClient()): IdentityProvider {
  /** Invites a user who is already in the user pool. The pool sends the mail again, unless the user has already accepted the invitation. */
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

let made: IdentityProvider | undefined;

export function identityProvider(): IdentityProvider {
  if (made === undefined) {
    const userPoolId = setting("USER_POOL_ID");
    made = userPoolId === undefined ? directoryOnly : userPool(userPoolId);
  }
  return made;
}
