/** Gets an access token for the smoke test. Errors and log lines contain no token, password or secret. */
import {
  AdminInitiateAuthCommand,
  type AuthenticationResultType,
  type CognitoIdentityProviderClient,
  InitiateAuthCommand,
} from "@aws-sdk/client-cognito-identity-provider";
import * as z from "zod/mini";
import { SmokeError } from "#shared/smoke/api.ts";

const Text = z.string().check(z.minLength(1));

/** The ways to sign in. The first way whose fields are all present is used. */
export const Credentials = z.union([
  z.object({ accessToken: Text }),
  /** A user of a Cognito user pool. The sign-in uses the administrators' flow, which needs the right `cognito-idp:AdminInitiateAuth`. */
  z.object({ user: Text, password: Text, userPoolId: Text, clientId: Text }),
  /** A client of any OpenID Connect issuer, without a user. */
  z.object({ tokenUrl: z.url(), clientId: Text, clientSecret: Text, scope: z.optional(Text) }),
  z.object({ tokenUrl: z.url(), clientId: Text, refreshToken: Text }),
  /** A refresh token. Without the URL of a token endpoint, the token belongs to a Cognito user pool. */
  z.object({ clientId: Text, refreshToken: Text }),
]);
export type Credentials = z.output<typeof Credentials>;

/** @param cognito makes the Cognito client; it is called only if the credentials belong to a user pool */
export async function accessToken(
  credentials: Credentials,
  cognito: () => CognitoIdentityProviderClient,
): Promise<string> {
  if ("accessToken" in credentials) return credentials.accessToken;
  if ("tokenUrl" in credentials) return fromTokenEndpoint(credentials);
  const { AuthenticationResult } =
    "password" in credentials
      ? await cognito().send(
          new AdminInitiateAuthCommand({
            AuthFlow: "ADMIN_USER_PASSWORD_AUTH",
            UserPoolId: credentials.userPoolId,
            ClientId: credentials.clientId,
            AuthParameters: { USERNAME: credentials.user, PASSWORD: credentials.password },
          }),
        )
      : await cognito().send(
          new InitiateAuthCommand({
            AuthFlow: "REFRESH_TOKEN_AUTH",
            ClientId: credentials.clientId,
            AuthParameters: { REFRESH_TOKEN: credentials.refreshToken },
          }),
        );
  return tokenOf(AuthenticationResult);
}

function tokenOf(result: AuthenticationResultType | undefined): string {
  // Instead of returning tokens, the pool may require a new password or a second factor.
  if (result?.AccessToken === undefined) throw new SmokeError("the user pool asks for more than a password");
  return result.AccessToken;
}

const Granted = z.object({ access_token: Text });

async function fromTokenEndpoint({
  tokenUrl,
  clientId,
  ...secret
}: Extract<Credentials, { tokenUrl: string }>): Promise<string> {
  const grant: Record<string, string> =
    "refreshToken" in secret
      ? { grant_type: "refresh_token", refresh_token: secret.refreshToken }
      : {
          grant_type: "client_credentials",
          client_secret: secret.clientSecret,
          ...(secret.scope !== undefined && { scope: secret.scope }),
        };
  const body = new URLSearchParams({ client_id: clientId, ...grant });
  const answer = await fetch(tokenUrl, { method: "POST", body, signal: AbortSignal.timeout(10_000) });
  const granted = z.safeParse(Granted, await answer.json().catch(() => undefined));
  if (!answer.ok || !granted.success) throw new SmokeError(`the token endpoint answers ${answer.status} and no token`);
  return granted.data.access_token;
}
