/** The key that wraps the companies' data keys, for the functions that sign webhooks or make their secrets, and for nobody else. */
import { AccountRootPrincipal, Effect, PolicyDocument, PolicyStatement } from "aws-cdk-lib/aws-iam";
import { type IKey, Key } from "aws-cdk-lib/aws-kms";
import { RemovalPolicy } from "aws-cdk-lib/core";
import type { Construct } from "constructs";
import { PURPOSE } from "#shared/secrets/secrets.ts";
import type { Access } from "./routes/access.ts";

/** The tag of a role that may use the key. An operator's role needs it, too, for as long as it encrypts secrets of before. */
export const SECRETS_TAG = { name: "webhook-secrets", value: "use" } as const;

/** The words with which data keys are wrapped are those that the rights ask for. */
const secretsCondition = { "kms:EncryptionContext:purpose": PURPOSE } as const;

/** What looks after a key without reading anything with it, grants to others included. */
const administration = [
  ...["kms:DescribeKey", "kms:GetKeyPolicy", "kms:GetKeyRotationStatus", "kms:ListResourceTags", "kms:ListKeyPolicies"],
  ...["kms:PutKeyPolicy", "kms:UpdateKeyDescription", "kms:EnableKey", "kms:DisableKey"],
  ...["kms:EnableKeyRotation", "kms:DisableKeyRotation", "kms:TagResource", "kms:UntagResource"],
  ...["kms:ScheduleKeyDeletion", "kms:CancelKeyDeletion"],
];

/** Without it no webhook can be signed: it outlives the stack as the table does, and one that is left is used as it is. */
export function createSecretsKey(scope: Construct, adoptedArn: string | undefined): IKey {
  if (adoptedArn !== undefined) return Key.fromKeyArn(scope, "SecretsKey", adoptedArn);
  return new Key(scope, "SecretsKey", {
    description: "Wraps the data keys that secrets of webhooks are encrypted with",
    enableKeyRotation: true,
    removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    policy: new PolicyDocument({
      statements: [
        new PolicyStatement({
          sid: "Administration",
          effect: Effect.ALLOW,
          principals: [new AccountRootPrincipal()],
          actions: administration,
          resources: ["*"],
        }),
        // The principal is the account, so that its policies decide; of those it counts only what roles with the tag have.
        new PolicyStatement({
          sid: "SigningFunctions",
          effect: Effect.ALLOW,
          principals: [new AccountRootPrincipal()],
          actions: ["kms:Decrypt", "kms:GenerateDataKey"],
          resources: ["*"],
          conditions: {
            StringEquals: { [`aws:PrincipalTag/${SECRETS_TAG.name}`]: SECRETS_TAG.value, ...secretsCondition },
          },
        }),
      ],
    }),
  });
}

/** Data keys are made by whoever makes a company's first secret; the others unwrap them. */
export function secretsStatements(secrets: Access["secrets"], { keyArn }: IKey): PolicyStatement[] {
  if (secrets === undefined) return [];
  const actions = ["kms:Decrypt", ...(secrets === "make" ? ["kms:GenerateDataKey"] : [])];
  const conditions = { StringEquals: secretsCondition };
  return [new PolicyStatement({ effect: Effect.ALLOW, actions, resources: [keyArn], conditions })];
}
