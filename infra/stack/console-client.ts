/** Creates the user pool client with which the console signs users in, and the domain of the user pool's sign-in pages. */
import {
  ClientAttributes,
  OAuthScope,
  UserPool,
  UserPoolClient,
  UserPoolClientIdentityProvider,
  UserPoolDomain,
} from "aws-cdk-lib/aws-cognito";
import { Duration, Fn, Stack } from "aws-cdk-lib/core";
import type { Construct } from "constructs";
import * as limits from "#shared/limits.ts";
import type { DeployConfig } from "../settings/config.ts";
import type { Platform } from "./function.ts";

interface ConsoleClientSpec {
  readonly url: string;
  readonly config: Pick<DeployConfig, "adopted" | "console">;
}

/**
 * Creates the client and, unless the user pool already has one, the domain of its sign-in pages. Returns the client's id. The client has no
 * client secret. Instead, PKCE proves that the server which exchanges the code also began the sign-in.
 */
export function createConsoleClient(
  home: Construct,
  { userPool }: Platform,
  { url, config }: ConsoleClientSpec,
): string {
  if (userPool === undefined) throw new Error("context key consoleClient: needed with console and issuer");
  const pool = UserPool.fromUserPoolId(home, "UserPool", userPool.id);
  // A user pool can have only one domain of the form `PREFIX.auth.REGION.amazoncognito.com`. CloudFormation deletes this domain together with
  // the service stack. So a user pool of an earlier deployment (`adopted`) has no domain, unless the operator has given it one.
  if (config.adopted?.userPool === undefined || config.console?.signInPages === true) {
    new UserPoolDomain(home, "SignInPages", { userPool: pool, cognitoDomain: { domainPrefix: prefix(home) } });
  }
  const client = new UserPoolClient(home, "Client", {
    userPool: pool,
    generateSecret: false,
    oAuth: {
      flows: { authorizationCodeGrant: true },
      // The scope `aws.cognito.signin.user.admin` is left out, so that an access token cannot change the user's attributes or password.
      scopes: [OAuthScope.OPENID],
      callbackUrls: [`${url}/api/session/callback`],
      logoutUrls: [`${url}/`],
    },
    supportedIdentityProviders: [UserPoolClientIdentityProvider.COGNITO],
    preventUserExistenceErrors: true,
    enableTokenRevocation: true,
    writeAttributes: new ClientAttributes().withStandardAttributes({ locale: true }),
    accessTokenValidity: Duration.hours(1),
    idTokenValidity: Duration.hours(1),
    refreshTokenValidity: Duration.millis(limits.sessionMs),
  });
  return client.userPoolClientId;
}

/** Returns the first part of the domain's host name. It must be unique in the region, so it contains the UUID from the stack's id. */
function prefix(home: Construct): string {
  const uuid = Fn.select(2, Fn.split("/", Stack.of(home).stackId));
  return Fn.join("-", ["canvassing", uuid]);
}
