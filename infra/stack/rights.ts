/** Creates the IAM statements of a function's role from its `access`. */
import { Effect, PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { Bucket } from "aws-cdk-lib/aws-s3";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import { Stack } from "aws-cdk-lib/core";
import * as z from "zod/mini";
import { DUE_INDEX, type Family, families } from "#shared/db/keys.ts";
import type { Purpose } from "#shared/secrets/secrets.ts";
import { type Access, folderNames, type TableAction } from "../routes/route.ts";
import type { Console } from "../settings/config.ts";

export interface ServedTable {
  readonly tableName: string;
  readonly tableArn: string;
  readonly tableStreamArn?: string | undefined;
}

export interface Resources {
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
  /** Undefined if the issuer is external. */
  readonly userPool: { readonly id: string; readonly arn: string; readonly clientId: string } | undefined;
}

export function allow(actions: string[], resources: string[]): PolicyStatement {
  return new PolicyStatement({ effect: Effect.ALLOW, actions, resources });
}

export function statements(access: Access, resources: Resources): PolicyStatement[] {
  const { table, bucket, userPool } = resources;
  const { due, ...ownFamilies } = access.table ?? {};
  return [
    ...tableStatements(ownFamilies, table.tableArn),
    ...tableStatements(due === undefined ? {} : { due }, `${table.tableArn}/index/${DUE_INDEX.name}`),
    ...(access.identityProvider !== undefined && userPool !== undefined
      ? [allow(poolActions[access.identityProvider], [userPool.arn])]
      : []),
    ...consoleStatements(access.console, resources),
    ...folderStatements(access.files ?? {}, bucket),
    ...(access.bucket === "list" ? [allow(["s3:ListBucket"], [bucket.bucketArn])] : []),
    ...keyStatements("webhook-secrets", access.secrets, resources.secretsKey),
    ...keyStatements("console-sessions", access.sessionTokens, resources.secretsKey),
    ...keyStatements("sync-cursors", access.cursors, resources.secretsKey),
    ...queueNames.flatMap((name) =>
      access[name] === "send" ? [allow(["sqs:SendMessage"], [resources[name].queueArn])] : [],
    ),
  ];
}

/** Only a client at an external issuer has a secret. */
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
 * of a batch or a transaction.
 */
function tableStatements(access: NonNullable<Access["table"]>, resource: string): PolicyStatement[] {
  const byFamilies = new Map<string, { patterns: string[]; actions: TableAction[] }>();
  for (const [action, patterns] of patternsByAction(access)) {
    const same = byFamilies.get(patterns.join());
    if (same === undefined) byFamilies.set(patterns.join(), { patterns, actions: [action] });
    else same.actions.push(action);
  }
  return [...byFamilies.values()].map(({ patterns, actions }) => {
    const statement = allow(
      actions.map((action) => `dynamodb:${action}`),
      [resource],
    );
    statement.addCondition("ForAllValues:StringLike", { "dynamodb:LeadingKeys": patterns });
    // `ForAllValues` is also true for a request without keys, such as a Scan.
    statement.addCondition("Null", { "dynamodb:LeadingKeys": "false" });
    return statement;
  });
}

function patternsByAction(access: NonNullable<Access["table"]>): Map<TableAction, string[]> {
  const patterns = new Map<TableAction, string[]>();
  for (const family of familyNames) {
    for (const action of access[family] ?? []) {
      patterns.set(action, [...(patterns.get(action) ?? []), families[family]]);
    }
  }
  return patterns;
}

/** A fixed order, so that the template does not change when a route lists its key families differently. */
const familyNames = [
  "ids",
  "identity",
  "sessions",
  "email",
  "quotas",
  "reference",
  "prospectRanges",
  "prospects",
  "addressRanges",
  "places",
  "calendar",
  "agendas",
  "addresses",
  "imports",
  "openImports",
  "importList",
  "exports",
  "bulkJobs",
  "bulkJobList",
  "bulkQueues",
  "idempotency",
  "receipts",
  "clientRecords",
  "territories",
  "deletedTerritories",
  "index",
  "indexTexts",
  "flushRequests",
  "changeLog",
  "factLog",
  "dayFacts",
  "manifests",
  "segments",
  "webhooks",
  "dataKeys",
  "sessionDataKeys",
  "cursorDataKeys",
  "deliveries",
  "due",
] as const satisfies readonly Family[];

function folderStatements(files: NonNullable<Access["files"]>, bucket: Bucket): PolicyStatement[] {
  return folderNames.flatMap((folder) => {
    const actions = files[folder]?.map((action) => `s3:${action}`);
    return actions === undefined ? [] : [allow(actions, [bucket.arnForObjects(`${folder}/*`)])];
  });
}

const ExportedArn = z.object({ "Fn::ImportValue": z.string() });

/**
 * The cdk-nag findings about wildcards in `folderStatements`. Their ids contain the CDK's generated name of the stack export for the
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

/** When a role may use the KMS key for a purpose, for example `webhook-secrets`: it needs a tag with this name. */
export const keyConditions = (purpose: Purpose): Readonly<Record<string, string>> => ({
  [`aws:PrincipalTag/${purpose}`]: KEY_TAG_VALUE,
  ...contextCondition(purpose),
});
const KEY_TAG_VALUE = "use";

const contextCondition = (purpose: Purpose) => ({ "kms:EncryptionContext:purpose": purpose });

export const keyTags = (access: Access): readonly (readonly [name: Purpose, value: string])[] => [
  ...(access.secrets === undefined ? [] : [["webhook-secrets", KEY_TAG_VALUE] as const]),
  ...(access.sessionTokens === undefined ? [] : [["console-sessions", KEY_TAG_VALUE] as const]),
  ...(access.cursors === undefined ? [] : [["sync-cursors", KEY_TAG_VALUE] as const]),
];

/**
 * With `make`, the function may create and decrypt data keys of the purpose, with another value only decrypt them, and without one neither.
 */
function keyStatements(
  purpose: Purpose,
  use: Access["secrets"] | Access["sessionTokens"] | Access["cursors"],
  { keyArn }: IKey,
): PolicyStatement[] {
  if (use === undefined) return [];
  const actions = ["kms:Decrypt", ...(use === "make" ? ["kms:GenerateDataKey"] : [])];
  const conditions = { StringEquals: contextCondition(purpose) };
  return [new PolicyStatement({ effect: Effect.ALLOW, actions, resources: [keyArn], conditions })];
}
