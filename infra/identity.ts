/** Who may sign in: the configured OpenID Connect issuer, an adopted Cognito user pool, or else one of the stack's own. */
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
import type { DeployConfig } from "./config.ts";
import { accept } from "./finding.ts";

export interface Identity {
  readonly issuer: string;
  /** Comma-separated. */
  readonly audience: string;
  /** Undefined: the issuer's discovery document says it. */
  readonly jwksUri: string | undefined;
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
    // Amazon Cognito documents this place for every user pool.
    jwksUri: `${issuer}/.well-known/jwks.json`,
    userPool: { id: pool.userPoolId, arn: pool.userPoolArn, clientId },
  };
}

/** Users are made by an administrator, never by themselves: a sign-up would belong to no company. */
function createUserPool(scope: Construct, mail: DeployConfig["mail"]): UserPool {
  const pool = new UserPool(scope, "UserPool", {
    featurePlan: FeaturePlan.ESSENTIALS,
    signInAliases: { email: true },
    signInCaseSensitive: false,
    selfSignUpEnabled: false,
    autoVerify: { email: true },
    // Until a new address is verified the old one stays, and with it who can reset the password.
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
  sendBy(pool, mail);
  accept(pool, {
    "AwsSolutions-COG2": "Canvassers sign in on shared phones at the door: the second factor is each company's choice.",
    "AwsSolutions-COG8": "The Plus plan costs per active user; whoever wants its threat protection can switch it on.",
  });
  return pool;
}

/** By the ARN as it was given: the identity may be of another region than the pool, which the construct's own way cannot say. */
function sendBy(pool: UserPool, mail: DeployConfig["mail"]): void {
  const resource = pool.node.defaultChild;
  if (mail === undefined || !(resource instanceof CfnUserPool)) return;
  resource.emailConfiguration = { emailSendingAccount: "DEVELOPER", from: mail.from, sourceArn: mail.sesIdentity };
}

/**
 * What a signed-in user may change with an access token alone. Without a list Cognito lets them write every standard
 * attribute, the e-mail address included, and an empty list is none; so it names one that nothing reads.
 */
const writable = new ClientAttributes().withStandardAttributes({ locale: true });

/**
 * Applications on phones hold no secret and sign in by SRP, which never sends the password. The password flow is the
 * administrators' one: it needs AWS credentials besides, and lets the smoke test sign in without an SRP library.
 */
function createClient(pool: UserPool): UserPoolClient {
  const client = pool.addClient("Client", {
    generateSecret: false,
    authFlows: { userSrp: true, adminUserPassword: true },
    disableOAuth: true,
    preventUserExistenceErrors: true,
    enableTokenRevocation: true,
    writeAttributes: writable,
    accessTokenValidity: Duration.hours(1),
    idTokenValidity: Duration.hours(1),
    refreshTokenValidity: Duration.days(30),
  });
  // Its id is in every application.
  client.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
  return client;
}

/** What the service asks of its pool. */
export const poolActions = {
  invite: ["cognito-idp:AdminCreateUser", "cognito-idp:AdminGetUser"],
  withdraw: ["cognito-idp:AdminDeleteUser", "cognito-idp:AdminGetUser"],
} as const;
