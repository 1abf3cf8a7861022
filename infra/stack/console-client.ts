/** The user pool client of the console, and the domain of the sign-in pages. */
import {
  OAuthScope,
  UserPool,
  UserPoolClient,
  UserPoolClientIdentityProvider,
  UserPoolDomain,
} from "aws-cdk-lib/aws-cognito";
import { Duration, Fn } from "aws-cdk-lib/core";
import type { Construct } from "constructs";
import * as limits from "#shared/limits.ts";
import type { DeployConfig } from "../settings/config.ts";
import type { Platform } from "./function.ts";
import { clientDefaults } from "./identity.ts";
import { stackUuid } from "./stack-id.ts";

/** Creates the client and returns its id. It has no secret: PKCE proves that the server which exchanges the code also began the sign-in. */
export function createConsoleClient(
  home: Construct,
  { userPool }: Platform,
  url: string,
  config: DeployConfig,
): string {
  if (userPool === undefined) throw new Error("context key consoleClient: needed with console and issuer");
  const pool = UserPool.fromUserPoolId(home, "UserPool", userPool.id);
  // A user pool has only one domain for sign-in pages, which CloudFormation deletes with the service stack. So an adopted pool has none,
  // unless the operator has created one. The setting `signInPages` is then false.
  if (config.adopted?.userPool === undefined || config.console?.signInPages === true) {
    // The prefix must be unique in the region.
    const domainPrefix = Fn.join("-", ["canvassing", stackUuid(home)]);
    new UserPoolDomain(home, "SignInPages", { userPool: pool, cognitoDomain: { domainPrefix } });
  }
  const client = new UserPoolClient(home, "Client", {
    userPool: pool,
    ...clientDefaults,
    oAuth: {
      flows: { authorizationCodeGrant: true },
      // Without `aws.cognito.signin.user.admin`, an access token cannot change the user's attributes or password.
      scopes: [OAuthScope.OPENID],
      callbackUrls: [`${url}/api/session/callback`],
      logoutUrls: [`${url}/`],
    },
    supportedIdentityProviders: [UserPoolClientIdentityProvider.COGNITO],
    refreshTokenValidity: Duration.millis(limits.sessionMs),
  });
  return client.userPoolClientId;
}
