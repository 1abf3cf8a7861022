/** Finds, invites, removes and signs in users of a Cognito user pool. */
import {
  AdminCreateUserCommand,
  AdminDeleteUserCommand,
  AdminGetUserCommand,
  AdminInitiateAuthCommand,
  AdminSetUserPasswordCommand,
  type AttributeType,
  CognitoIdentityProviderClient,
  InitiateAuthCommand,
  UserNotFoundException,
  UsernameExistsException,
  UserStatusType,
} from "@aws-sdk/client-cognito-identity-provider";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

/** Longer than the default, because Cognito sends the invitation mail before it responds. */
const ANSWER_MS = 5_000;

export const cognitoClient = (settings: ClientSettings = {}): CognitoIdentityProviderClient =>
  new CognitoIdentityProviderClient(clientConfig({ answerMs: ANSWER_MS, ...settings }));

export interface UserPool {
  readonly id: string;
  readonly client: CognitoIdentityProviderClient;
}

export interface PoolUser {
  /** The subject of the user's tokens. */
  readonly sub: string | undefined;
  /** True until the user accepts the invitation. */
  readonly isInvited: boolean;
}

const subOf = (attributes: readonly AttributeType[] = []): string | undefined =>
  attributes.find(({ Name }) => Name === "sub")?.Value;

/** Undefined if the pool has no such user. */
export async function findPoolUser({ id, client }: UserPool, email: string): Promise<PoolUser | undefined> {
  try {
    const found = await client.send(new AdminGetUserCommand({ UserPoolId: id, Username: email }));
    return {
      sub: subOf(found.UserAttributes),
      isInvited: found.UserStatus === UserStatusType.FORCE_CHANGE_PASSWORD,
    };
  } catch (error) {
    if (error instanceof UserNotFoundException) return undefined;
    throw error;
  }
}

/** Creates a user. If `mail` is false, the pool sends no invitation. Returns undefined if the pool already has a user with this address. */
export async function createPoolUser(
  { id, client }: UserPool,
  email: string,
  { mail }: { readonly mail: boolean },
): Promise<PoolUser | undefined> {
  const UserAttributes = [
    { Name: "email", Value: email },
    { Name: "email_verified", Value: "true" },
  ];
  const user = { UserPoolId: id, Username: email, UserAttributes };
  const command = new AdminCreateUserCommand(mail ? user : { ...user, MessageAction: "SUPPRESS" });
  try {
    return { sub: subOf((await client.send(command)).User?.Attributes), isInvited: true };
  } catch (error) {
    if (error instanceof UsernameExistsException) return undefined;
    throw error;
  }
}

export async function resendInvitation({ id, client }: UserPool, email: string): Promise<void> {
  await client.send(new AdminCreateUserCommand({ UserPoolId: id, Username: email, MessageAction: "RESEND" }));
}

export async function removePoolUser({ id, client }: UserPool, email: string): Promise<void> {
  try {
    await client.send(new AdminDeleteUserCommand({ UserPoolId: id, Username: email }));
  } catch (error) {
    if (!(error instanceof UserNotFoundException)) throw error;
  }
}

/** Sets a permanent password: the user need not change it at the first sign-in. */
export async function setPassword({ id, client }: UserPool, email: string, password: string): Promise<void> {
  const user = { UserPoolId: id, Username: email };
  await client.send(new AdminSetUserPasswordCommand({ ...user, Password: password, Permanent: true }));
}

/** Returns an access token, or undefined if the pool requires more, for example a second factor. Needs `cognito-idp:AdminInitiateAuth`. */
export async function signInByPassword(
  { id, client }: UserPool,
  { clientId, user, password }: { readonly clientId: string; readonly user: string; readonly password: string },
): Promise<string | undefined> {
  const { AuthenticationResult } = await client.send(
    new AdminInitiateAuthCommand({
      AuthFlow: "ADMIN_USER_PASSWORD_AUTH",
      UserPoolId: id,
      ClientId: clientId,
      AuthParameters: { USERNAME: user, PASSWORD: password },
    }),
  );
  return AuthenticationResult?.AccessToken;
}

export async function signInByRefreshToken(
  client: CognitoIdentityProviderClient,
  { clientId, refreshToken }: { readonly clientId: string; readonly refreshToken: string },
): Promise<string | undefined> {
  const { AuthenticationResult } = await client.send(
    new InitiateAuthCommand({
      AuthFlow: "REFRESH_TOKEN_AUTH",
      ClientId: clientId,
      AuthParameters: { REFRESH_TOKEN: refreshToken },
    }),
  );
  return AuthenticationResult?.AccessToken;
}
