/** Creates the IAM statements of a function's role from its `access`. */
import { Effect, PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { Bucket } from "aws-cdk-lib/aws-s3";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import { Stack } from "aws-cdk-lib/core";
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { DUE_INDEX, families } from "#shared/db/keys.ts";
import type { Purpose } from "#shared/secrets/secrets.ts";
import { type Access, folderNames, type TableAccess } from "../routes/route.ts";
import type { Console, DeployConfig } from "../settings/config.ts";
import type { Identity } from "./identity.ts";

export interface ServedTable {
  readonly tableName: string;
  readonly tableArn: string;
  readonly tableStreamArn?: string | undefined;
}

export interface Resources extends Identity {
  readonly table: ServedTable;
  readonly bucket: Bucket;
  readonly deliveryQueue: Queue;
  readonly poisonRecords: Queue;
  readonly importQueue: Queue;
  readonly exportQueue: Queue;
  readonly bulkQueue: Queue;
  readonly secretsKey: IKey;
  /** Undefined if the deployment has no console. */
  readonly console: Console | undefined;
  readonly mail: DeployConfig["mail"];
}

export function allow(actions: string[], resources: string[]): PolicyStatement {
  return new PolicyStatement({ effect: Effect.ALLOW, actions, resources });
}

export function statements(access: Access, resources: Resources): PolicyStatement[] {
  const { table, bucket, userPool, mail } = resources;
  const { due, ...ownFamilies } = access.table ?? {};
  return [
    ...tableStatements(ownFamilies, table.tableArn),
    ...tableStatements(due === undefined ? {} : { due }, `${table.tableArn}/index/${DUE_INDEX.name}`),
    ...(access.identityProvider !== undefined && userPool !== undefined
      ? [allow(poolActions[access.identityProvider], [userPool.arn])]
      : []),
    ...(access.mail !== undefined && mail !== undefined ? [allow(["ses:SendEmail"], [mail.sesIdentity])] : []),
    ...consoleStatements(access.console, resources),
    ...folderStatements(access.files ?? {}, bucket),
    ...(access.bucket === "list" ? [allow(["s3:ListBucket"], [bucket.bucketArn])] : []),
    ...keyStatements(access, resources.secretsKey),
    ...queueNames.flatMap((name) =>
      access[name] === "send" ? [allow(["sqs:SendMessage"], [resources[name].queueArn])] : [],
    ),
  ];
}

/** Returns the right to read the secret of the console's client. The client has a secret only at an external issuer. */
function consoleStatements(access: Access["console"], { deliveryQueue, console }: Resources): PolicyStatement[] {
  if (access === undefined || console?.secretParameter === undefined) return [];
  const { partition, region, account } = Stack.of(deliveryQueue);
  return [
    allow(["ssm:GetParameter"], [`arn:${partition}:ssm:${region}:${account}:parameter${console.secretParameter}`]),
  ];
}

const queueNames = ["deliveryQueue", "poisonRecords", "importQueue", "exportQueue", "bulkQueue"] as const;

const poolActions: Record<NonNullable<Access["identityProvider"]>, string[]> = {
  invite: ["cognito-idp:AdminCreateUser", "cognito-idp:AdminGetUser"],
  withdraw: ["cognito-idp:AdminDeleteUser", "cognito-idp:AdminGetUser"],
};

/**
 * Actions on the same key families share a statement. The families of one action are never split, because one statement must allow all keys
 * of a batch or a transaction. The patterns are in the order of `families`, so that the template does not change when a route lists its
 * families differently.
 */
function tableStatements(access: TableAccess, resource: string): PolicyStatement[] {
  const declared = new Map(Object.entries(access));
  const rights = Object.entries(families).flatMap(([family, pattern]) =>
    (declared.get(family) ?? []).map((action) => ({ action: `dynamodb:${action}`, pattern })),
  );
  const patternsOf = Map.groupBy(rights, ({ action }) => action);
  const keysOf = (action: string): string[] => (patternsOf.get(action) ?? []).map(({ pattern }) => pattern);
  return [...Map.groupBy(patternsOf.keys(), (action) => keysOf(action).join()).values()].map((actions) => {
    const statement = allow(actions, [resource]);
    statement.addCondition("ForAllValues:StringLike", { "dynamodb:LeadingKeys": keysOf(at(actions, 0)) });
    // Require a key, because `ForAllValues` is also true for a request without keys, such as a Scan.
    statement.addCondition("Null", { "dynamodb:LeadingKeys": "false" });
    return statement;
  });
}

function folderStatements(files: NonNullable<Access["files"]>, bucket: Bucket): PolicyStatement[] {
  return folderNames.flatMap((folder) => {
    const actions = files[folder]?.map((action) => `s3:${action}`);
    return actions === undefined ? [] : [allow(actions, [bucket.arnForObjects(`${folder}/*`)])];
  });
}

const ExportedArn = z.object({ "Fn::ImportValue": z.string() });

/**
 * Returns the accepted findings of cdk-nag about folders, by their ids. An id contains the CDK's generated name of the stack export for the
 * bucket's ARN.
 */
export function folderFindings(
  { stack, bucketArn }: Bucket,
  files: NonNullable<Access["files"]>,
): Record<string, string> {
  const { "Fn::ImportValue": name } = z.parse(ExportedArn, stack.resolve(stack.exportValue(bucketArn)));
  const reason = "The wildcard covers the objects of this one folder, because their names are made at run time.";
  const folders = folderNames.filter((folder) => files[folder] !== undefined);
  return Object.fromEntries(folders.map((folder) => [`AwsSolutions-IAM5[Resource::${name}/${folder}/*]`, reason]));
}

/** The value of the tag that a role needs to use the KMS key for a purpose. The tag has the purpose's name. */
export const KEY_TAG_VALUE = "use";

export const keyConditions = (purpose: Purpose): Readonly<Record<string, string>> => ({
  [`aws:PrincipalTag/${purpose}`]: KEY_TAG_VALUE,
  "kms:EncryptionContext:purpose": purpose,
});

/** Returns the purposes for which a function may use the KMS key, each with what it may do. */
export const keyUses = ({ secrets, sessionTokens, cursors }: Access) =>
  Object.entries({
    "webhook-secrets": secrets,
    "console-sessions": sessionTokens,
    "sync-cursors": cursors,
  } satisfies Record<Purpose, string | undefined>).filter(([, use]) => use !== undefined);

/** Returns the rights to the KMS key. With `make`, a function may create and decrypt a purpose's data keys, otherwise only decrypt them. */
const keyStatements = (access: Access, { keyArn }: IKey): PolicyStatement[] =>
  keyUses(access).map(([purpose, use]) => {
    const statement = allow(["kms:Decrypt", ...(use === "make" ? ["kms:GenerateDataKey"] : [])], [keyArn]);
    statement.addCondition("StringEquals", { "kms:EncryptionContext:purpose": purpose });
    return statement;
  });
