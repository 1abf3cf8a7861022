/** The only way to make a Lambda function: runtime, log group, a role of its own, and rights with their environment. */
import { join } from "node:path";
import type { Table } from "aws-cdk-lib/aws-dynamodb";
import { Effect, PolicyDocument, PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import {
  ApplicationLogLevel,
  Architecture,
  CfnFunction,
  Code,
  Function as LambdaFunction,
  LoggingFormat,
  RecursiveLoop,
  Runtime,
  SystemLogLevel,
} from "aws-cdk-lib/aws-lambda";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import type { Bucket } from "aws-cdk-lib/aws-s3";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import { Duration, RemovalPolicy, Tags } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { type Family, families } from "#shared/db/families.ts";
import { DUE_INDEX } from "#shared/db/keys.ts";
import type { Capacity } from "./capacity.ts";
import { accept } from "./finding.ts";
import { fileStatements, folderFindings } from "./folders.ts";
import { poolActions } from "./identity.ts";
import { SECRETS_TAG, secretsStatements } from "./keys.ts";
import { countUnreadable } from "./monitoring.ts";
import type { Access, Setting, TableAction } from "./routes/access.ts";

/** Below 1 769 MB a function has a share of one CPU in proportion. */
const MEMORY_MB = 1024;

/** What functions are made of and bound to. */
export interface Platform {
  /** Directory of the bundles, one below it per function. */
  readonly bundles: string;
  readonly table: Table;
  readonly bucket: Bucket;
  readonly deliveryQueue: Queue;
  readonly parkedRecords: Queue;
  readonly importQueue: Queue;
  readonly exportQueue: Queue;
  readonly secretsKey: IKey;
  readonly issuer: string;
  readonly audience: string;
  /** Where the issuer's keys are, if the deployment knows. */
  readonly jwksUri: string | undefined;
  /** Where new users are invited, unless the issuer is somebody else's. */
  readonly userPool: { readonly id: string; readonly arn: string } | undefined;
  readonly settings: Readonly<Record<Setting, string>>;
  readonly capacity: Capacity;
}

export interface FunctionSpec {
  readonly file: string;
  readonly access: Access;
  readonly timeoutSeconds: number;
  /** Rights that an event source needs, over and above `access`. */
  readonly statements?: readonly PolicyStatement[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Why it may send to the queue that invokes it. With the SDK's clients, Lambda ends such a chain after 16 invocations unless it is allowed. */
  readonly recursion?: string;
  /** Default is a group of the function's own. */
  readonly logGroup?: LogGroup;
}

/** A log group for functions of one kind. */
export function functionLogs(scope: Construct, functions: readonly { readonly access: Access }[]): LogGroup {
  const logGroup = new LogGroup(scope, "Logs", {
    retention: RetentionDays.THREE_MONTHS,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  if (functions.some(({ access }) => access.table?.segments !== undefined)) countUnreadable(scope, logGroup);
  return logGroup;
}

export function createFunction(scope: Construct, platform: Platform, spec: FunctionSpec): LambdaFunction {
  const home = new Construct(scope, constructId(spec.file));
  const logGroup = spec.logGroup ?? functionLogs(home, [spec]);
  const logs = allow(["logs:CreateLogStream", "logs:PutLogEvents"], [logGroup.logGroupArn]);
  const role = new Role(home, "Role", {
    assumedBy: new ServicePrincipal("lambda.amazonaws.com"),
    inlinePolicies: {
      access: new PolicyDocument({ statements: [logs, ...rights(spec.access, platform), ...(spec.statements ?? [])] }),
    },
  });
  if (spec.access.secrets !== undefined) Tags.of(role).add(SECRETS_TAG.name, SECRETS_TAG.value);
  if (spec.access.files !== undefined) accept(role, folderFindings(platform.bucket, spec.access.files));
  const reserved = platform.capacity.reserved[spec.file];
  const made = new LambdaFunction(home, "Function", {
    description: spec.file,
    code: Code.fromAsset(join(platform.bundles, spec.file)),
    handler: "index.handler",
    runtime: Runtime.NODEJS_24_X,
    architecture: Architecture.ARM_64,
    memorySize: platform.capacity.memoryMb[spec.file] ?? MEMORY_MB,
    timeout: Duration.seconds(spec.timeoutSeconds),
    environment: { ...variables(spec.access, platform), ...spec.environment },
    logGroup,
    // Text would have time, id and level before each line, and no metric filter would find a field in it.
    loggingFormat: LoggingFormat.JSON,
    applicationLogLevelV2: ApplicationLogLevel.INFO,
    systemLogLevelV2: SystemLogLevel.INFO,
    ...(reserved !== undefined && { reservedConcurrentExecutions: reserved }),
    ...(spec.recursion !== undefined && { recursiveLoop: RecursiveLoop.ALLOW }),
    role,
  });
  accept(made, {
    "Serverless-LambdaDLQ":
      "Requests are answered, streams and queues have their own dead letters, and a lost sweep is made good by the next.",
    "Serverless-LambdaTracing":
      "X-Ray's rights exist for all resources only; the request id leads from the answer through every log line.",
  });
  const resource = made.node.defaultChild;
  if (resource instanceof CfnFunction) {
    resource.addMetadata("file", spec.file);
    if (spec.recursion !== undefined) resource.addMetadata("recursion", spec.recursion);
  }
  return made;
}

/** `events/publish` -> `EventsPublish`. */
export function constructId(file: string): string {
  return file.replace(/(?:^|[/-])(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** The environment that goes with each right. */
function variables(access: Access, platform: Platform): Record<string, string> {
  const settings = (access.settings ?? []).map((name) => [name, platform.settings[name]] as const);
  return {
    ...(access.table !== undefined && { TABLE_NAME: platform.table.tableName }),
    ...(access.issuer !== undefined && issuerVariables(platform)),
    ...(access.identityProvider !== undefined && platform.userPool && { USER_POOL_ID: platform.userPool.id }),
    ...(access.files !== undefined && { BUCKET_NAME: platform.bucket.bucketName }),
    ...(access.secrets !== undefined && { SECRETS_KEY_ARN: platform.secretsKey.keyArn }),
    ...(access.deliveryQueue !== undefined && { DELIVERY_QUEUE_URL: platform.deliveryQueue.queueUrl }),
    ...(access.parkedRecords !== undefined && { PARKED_RECORDS_URL: platform.parkedRecords.queueUrl }),
    ...(access.importQueue !== undefined && { IMPORT_QUEUE_URL: platform.importQueue.queueUrl }),
    ...(access.exportQueue !== undefined && { EXPORT_QUEUE_URL: platform.exportQueue.queueUrl }),
    ...Object.fromEntries(settings),
  };
}

const issuerVariables = ({ issuer, audience, jwksUri }: Platform): Record<string, string> => ({
  ISSUER: issuer,
  AUDIENCE: audience,
  ...(jwksUri !== undefined && { JWKS_URI: jwksUri }),
});

function rights(access: Access, platform: Platform): PolicyStatement[] {
  const { due, ...families } = access.table ?? {};
  const index = `${platform.table.tableArn}/index/${DUE_INDEX.name}`;
  return [
    ...tableStatements(families, platform.table.tableArn),
    ...tableStatements(due === undefined ? {} : { due }, index),
    ...(access.identityProvider !== undefined && platform.userPool !== undefined
      ? [allow([...poolActions[access.identityProvider]], [platform.userPool.arn])]
      : []),
    ...fileStatements(access.files ?? {}, platform.bucket),
    ...(access.bucket === "list" ? [allow(["s3:ListBucket"], [platform.bucket.bucketArn])] : []),
    ...secretsStatements(access.secrets, platform.secretsKey),
    ...(access.deliveryQueue === "send" ? [allow(["sqs:SendMessage"], [platform.deliveryQueue.queueArn])] : []),
    ...(access.parkedRecords === "send" ? [allow(["sqs:SendMessage"], [platform.parkedRecords.queueArn])] : []),
    ...(access.importQueue === "send" ? [allow(["sqs:SendMessage"], [platform.importQueue.queueArn])] : []),
    ...(access.exportQueue === "send" ? [allow(["sqs:SendMessage"], [platform.exportQueue.queueArn])] : []),
  ];
}

/**
 * One statement per set of families, holding the actions allowed on exactly that set: a batch or transaction may touch
 * several families in one call and has to fit one statement whole.
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
    // A `ForAllValues` condition holds for a request without the key, so its absence is refused here.
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

const familyNames = [
  "ids",
  "identity",
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
  "idempotency",
  "territories",
  "deletedTerritories",
  "index",
  "indexTexts",
  "manifests",
  "segments",
  "webhooks",
  "dataKeys",
  "deliveries",
  "due",
] as const satisfies readonly Family[];

export function allow(actions: string[], resources: string[]): PolicyStatement {
  return new PolicyStatement({ effect: Effect.ALLOW, actions, resources });
}
