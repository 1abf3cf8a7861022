/** Chooses the issuer of access tokens: a configured one, an adopted Cognito user pool, or a new one. */
import {
  AccountRecovery,
  CfnUserPool,
  ClientAttributes,
  FeaturePlan,
  type IUserPool,
  Mfa,
  UserPool,
  type UserPoolClient,
} from "aws-cdk-lib/aws-cognito";
import { Duration, Fn, RemovalPolicy } from "aws-cdk-lib/core";
import type { Construct } from "constructs";
import type { DeployConfig } from "../settings/config.ts";
import { accept } from "./rules.ts";

export interface Identity {
  readonly issuer: string;
  readonly audience: string;
  /** The URL of the issuer's public keys. If it is undefined, the authorizer finds it in the issuer's discovery document. */
  readonly jwksUri: string | undefined;
  /** Undefined if the issuer is external. */
  readonly userPool?: { readonly id: string; readonly arn: string; readonly clientId: string };
}

export function createIdentity(scope: Construct, { issuer, jwksUri, audience, mail, adopted }: DeployConfig): Identity {
  if (issuer !== undefined) return { issuer, audience: audience.join(","), jwksUri };
  if (adopted?.userPool !== undefined) {
    const { id, clientId } = adopted.userPool;
    const pool = UserPool.fromUserPoolId(scope, "AdoptedUserPool", id);
    return identityOf(pool, `https://${pool.userPoolProviderName}`, clientId, audience);
  }
  const pool = createUserPool(scope, mail);
  return identityOf(pool, pool.userPoolProviderUrl, createClient(pool).userPoolClientId, audience);
}

function identityOf(pool: IUserPool, issuer: string, clientId: string, audience: readonly string[]): Identity {
  return {
    issuer,
    audience: audience.length === 0 ? clientId : Fn.join(",", [clientId, ...audience]),
    // Cognito documents this path.
    jwksUri: `${issuer}/.well-known/jwks.json`,
    userPool: { id: pool.userPoolId, arn: pool.userPoolArn, clientId },
  };
}

/** Creates a user pool without sign-up, because a user without an invitation would not belong to a company. */
function createUserPool(scope: Construct, mail: DeployConfig["mail"]): UserPool {
  const pool = new UserPool(scope, "UserPool", {
    featurePlan: FeaturePlan.ESSENTIALS,
    signInAliases: { email: true },
    signInCaseSensitive: false,
    selfSignUpEnabled: false,
    autoVerify: { email: true },
    // The old address stays valid until the user has verified the new one. An unverified address could receive the mail that resets the
    // password.
    keepOriginal: { email: true },
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
    removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
  });
  configureMail(pool, mail);
  accept(pool, {
    "AwsSolutions-COG2":
      "Canvassers sign in on shared phones at the door, so each company decides on the second factor.",
    "AwsSolutions-COG8":
      "The Plus plan costs extra for each active user. An operator who wants the threat protection of this plan can switch it on.",
  });
  return pool;
}

/** Sets the sender of the mails. This code changes the resource itself, because the CDK's construct accepts no ARN of an SES identity. */
function configureMail(pool: UserPool, mail: DeployConfig["mail"]): void {
  const resource = pool.node.defaultChild;
  if (mail === undefined || !(resource instanceof CfnUserPool)) return;
  resource.emailConfiguration = { emailSendingAccount: "DEVELOPER", from: mail.from, sourceArn: mail.sesIdentity };
}

/** The settings of the clients of apps and of the console, which cannot keep a secret. */
export const clientDefaults = {
  generateSecret: false,
  preventUserExistenceErrors: true,
  enableTokenRevocation: true,
  // The attributes that users may change with their access token. Without a list, or with an empty one, Cognito allows every standard
  // attribute, including the e-mail address. So the list contains an attribute that the service does not use.
  writeAttributes: new ClientAttributes().withStandardAttributes({ locale: true }),
  accessTokenValidity: Duration.hours(1),
  idTokenValidity: Duration.hours(1),
};

/** Apps cannot keep a secret, and sign in with SRP, which never sends the password. The smoke test uses the flow for administrators. */
function createClient(pool: UserPool): UserPoolClient {
  const client = pool.addClient("Client", {
    ...clientDefaults,
    authFlows: { userSrp: true, adminUserPassword: true },
    disableOAuth: true,
    refreshTokenValidity: Duration.days(30),
  });
  // Keep the client when the stack is deleted, because every installed app contains the client's id.
  client.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
  return client;
}
