/** The client for Cognito user pools. */
import { CognitoIdentityProviderClient } from "@aws-sdk/client-cognito-identity-provider";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";

/**
 * Milliseconds without a byte of the response after which a request fails. Cognito sends the invitation mail before it responds, so the
 * time is longer than for other services.
 */
const ANSWER_MS = 5_000;

export const cognitoClient = (settings: ClientSettings = {}): CognitoIdentityProviderClient =>
  new CognitoIdentityProviderClient(clientConfig({ answerMs: ANSWER_MS, ...settings }));
