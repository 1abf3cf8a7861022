/** Who may sign in: the configured OpenID Connect issuer, or else a Cognito user pool of the stack's own. */
import { AccountRecovery, FeaturePlan, Mfa, UserPool, type UserPoolClient } from "aws-cdk-lib/aws-cognito";
import { Duration, Fn, RemovalPolicy } from "aws-cdk-lib/core";
import type { Construct } from "constructs";
import type { DeployConfig } from "./config.ts";
import { accept } from "./finding.ts";

export interface Identity {
  readonly issuer: string;
  /** Comma-separated. */
  readonly audience: string;
  readonly userPool?: { readonly id: string; readonly arn: string; readonly clientId: string };
}

export function createIdentity(scope: Construct, { issuer, audience }: DeployConfig): Identity {
  if (issuer !== undefined) return { issuer, audience: audience.join(",") };
  const pool = createUserPool(scope);
  const client = createClient(pool);
  const clientId = client.userPoolClientId;
  return {
    issuer: pool.userPoolProviderUrl,
    audience: audience.length === 0 ? clientId : Fn.join(",", [clientId, ...audience]),
    userPool: { id: pool.userPoolId, arn: pool.userPoolArn, clientId },
  };
}

/** Users are made by an administrator, never by themselves: a sign-up would belong to no company. */
function createUserPool(scope: Construct): UserPool {
  const pool = new UserPool(scope, "UserPool", {
    featurePlan: FeaturePlan.ESSENTIALS,
    signInAliases: { email: true },
    signInCaseSensitive: false,
    selfSignUpEnabled: false,
    autoVerify: { email: true },
    passwordPolicy: {
      minLength: 12,
      requireLowercase: true,
      requireUppercase: true,
      requireDigits: true,
      requireSymbols: true,
      tempPasswordValidity: Duration.days(7),
    },
    mfa: Mfa.OPTIONAL,
    mfaSecondFactor: { otp: true, sms: false },
    accountRecovery: AccountRecovery.EMAIL_ONLY,
    deletionProtection: true,
    removalPolicy: RemovalPolicy.RETAIN,
  });
  accept(pool, {
    "AwsSolutions-COG2": "Canvassers sign in on shared phones at the door: the second factor is each company's choice.",
    "AwsSolutions-COG8": "The Plus plan costs per active user; whoever wants its threat protection can switch it on.",
  });
  return pool;
}

/**
 * Applications on phones hold no secret and sign in by SRP, which never sends the password. The password flow is the
 * administrators' one: it needs AWS credentials besides, and lets the smoke test sign in without an SRP library.
 */
function createClient(pool: UserPool): UserPoolClient {
  return pool.addClient("Client", {
    generateSecret: false,
    authFlows: { userSrp: true, adminUserPassword: true },
    disableOAuth: true,
    preventUserExistenceErrors: true,
    enableTokenRevocation: true,
    accessTokenValidity: Duration.hours(1),
    idTokenValidity: Duration.hours(1),
    refreshTokenValidity: Duration.days(30),
  });
}
