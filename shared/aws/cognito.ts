/** The client for Cognito user pools. */
import { CognitoIdentityProviderClient } from "@aws-sdk/client-cognito-identity-provider";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

/**
 * A request fails if no byte of the response arrives for this number of milliseconds. It is more than the default, because Cognito sends
 * the invitation mail before it responds.
 */
const ANSWER_MS = 5_000;

export const cognitoClient = (settings: ClientSettings = {}): CognitoIdentityProviderClient =>
  new CognitoIdentityProviderClient(clientConfig({ answerMs: ANSWER_MS, ...settings }));
