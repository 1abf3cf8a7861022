/** Gets an access token for the smoke test. Errors and log lines contain no token, password or secret. */
import type { CognitoIdentityProviderClient } from "@aws-sdk/client-cognito-identity-provider";
import * as z from "zod/mini";
import { signInByPassword, signInByRefreshToken } from "#shared/aws/cognito.ts";
import { SmokeError } from "#shared/smoke/api.ts";

const Text = z.string().check(z.minLength(1));

/** A client that gets its own token, without a user, from any issuer (OAuth's client credentials grant). */
export const OAuthClient = z.object({
  tokenUrl: z.url(),
  clientId: Text,
  clientSecret: Text,
  scope: z.optional(Text),
});
export type OAuthClient = z.output<typeof OAuthClient>;

/** The ways to sign in. The first way whose fields are all present is used. */
export const Credentials = z.union([
  z.object({ accessToken: Text }),
  /** A user of a Cognito user pool. The sign-in uses the administrators' flow, which needs the right `cognito-idp:AdminInitiateAuth`. */
  z.object({ user: Text, password: Text, userPoolId: Text, clientId: Text }),
  OAuthClient,
  z.object({ tokenUrl: z.url(), clientId: Text, refreshToken: Text }),
  /** A refresh token of a Cognito user pool. A refresh token of any other issuer needs `tokenUrl`. */
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
  const token =
    "password" in credentials
      ? await signInByPassword({ id: credentials.userPoolId, client: cognito() }, credentials)
      : await signInByRefreshToken(cognito(), credentials);
  if (token === undefined) throw new SmokeError("the user pool asks for more than a password");
  return token;
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
