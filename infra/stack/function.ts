/** Creates a Lambda function with the rights that it declares, and the environment variables that belong to them. */
import { join } from "node:path";
import { PolicyDocument, type PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
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
import { LogGroup } from "aws-cdk-lib/aws-logs";
import { Duration, RemovalPolicy, Tags } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { type Access, type Setting, usesSecretsKey } from "../routes/route.ts";
import { type Capacity, MEMORY_MB } from "../settings/capacity.ts";
import { countUnreadable } from "./alarms.ts";
import { allow, folderFindings, KEY_TAG_VALUE, keyUses, type Resources, statements } from "./rights.ts";
import { aliasOf } from "./rollout.ts";
import { accept } from "./rules.ts";

export interface Platform extends Resources {
  readonly bundles: string;
  readonly settings: Readonly<Record<Setting, string>>;
  readonly capacity: Capacity;
  readonly logDays: number;
}

export interface FunctionSpec {
  readonly file: string;
  readonly access: Access;
  readonly timeoutSeconds: number;
  /** Rights for the event source, in addition to those that `access` grants. */
  readonly statements?: readonly PolicyStatement[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Why the function sends messages to its own queue. Lambda's loop detection, which stops such a chain after 16 steps, is then off. */
  readonly recursion?: string;
  /** If true, Lambda logs each invocation. By default, it logs only failed ones. */
  readonly logsEachInvocation?: true;
  /** By default, the function gets a log group of its own. */
  readonly logGroup?: LogGroup;
  /** The construct that gets the function's role. By default, the role is created beside the function. */
  readonly roles?: Construct;
}

export function functionLogs(
  scope: Construct,
  { logDays }: Pick<Platform, "logDays">,
  functions: readonly { readonly access: Access }[],
): LogGroup {
  const logGroup = new LogGroup(scope, "Logs", { retention: logDays, removalPolicy: RemovalPolicy.DESTROY });
  const reads = (family: "segments" | "dayFacts"): boolean =>
    functions.some(({ access }) => access.table?.[family] !== undefined);
  if (reads("segments")) countUnreadable(scope, logGroup, "IndexUnreadable");
  if (reads("dayFacts")) countUnreadable(scope, logGroup, "ActivityUnreadable");
  return logGroup;
}

export function createFunction(scope: Construct, platform: Platform, spec: FunctionSpec): LambdaFunction {
  const home = new Construct(scope, constructId(spec.file));
  const logGroup = spec.logGroup ?? functionLogs(home, platform, [spec]);
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
    // Log in JSON, because a metric filter for JSON cannot read lines of the text format.
    loggingFormat: LoggingFormat.JSON,
    applicationLogLevelV2: ApplicationLogLevel.INFO,
    // At the level INFO, Lambda writes two lines for each invocation, half of all log bytes. CloudWatch metrics contain the same numbers.
    systemLogLevelV2: spec.logsEachInvocation ? SystemLogLevel.INFO : SystemLogLevel.WARN,
    ...(reserved !== undefined && { reservedConcurrentExecutions: reserved }),
    ...(spec.recursion !== undefined && { recursiveLoop: RecursiveLoop.ALLOW }),
    role: createRole(
      spec.roles === undefined ? home : new Construct(spec.roles, home.node.id),
      platform,
      spec,
      logGroup,
    ),
  });
  accept(made, {
    "Serverless-LambdaDLQ":
      "Callers get an answer, streams and queues have dead-letter queues, and the next sweep does the work of a lost sweep.",
    "Serverless-LambdaTracing":
      "X-Ray's rights cannot be limited to single resources. The request id of an answer is in every log line of the request.",
  });
  const resource = made.node.defaultChild;
  if (resource instanceof CfnFunction) {
    resource.addMetadata("file", spec.file);
    if (spec.recursion !== undefined) resource.addMetadata("recursion", spec.recursion);
  }
  return made;
}

/** Returns how callers invoke a function: through its alias if CodeDeploy replaces it step by step. Creates the alias, so call it once. */
export function called(deployed: LambdaFunction, file: string, { capacity }: Platform) {
  const alias = aliasOf(deployed, file, capacity.provisioned[file]);
  return { functionArn: alias ?? deployed.functionArn, functionName: alias ?? deployed.functionName };
}

function createRole(home: Construct, platform: Platform, spec: FunctionSpec, { logGroupArn }: LogGroup): Role {
  const { access } = spec;
  const logs = allow(["logs:CreateLogStream", "logs:PutLogEvents"], [logGroupArn]);
  const role = new Role(home, "Role", {
    assumedBy: new ServicePrincipal("lambda.amazonaws.com"),
    inlinePolicies: {
      access: new PolicyDocument({ statements: [logs, ...statements(access, platform), ...(spec.statements ?? [])] }),
    },
  });
  for (const [purpose] of keyUses(access)) Tags.of(role).add(purpose, KEY_TAG_VALUE);
  if (access.files !== undefined) accept(role, folderFindings(platform.bucket, access.files));
  return role;
}

/** Returns the construct id of a function: `events/publish` becomes `EventsPublish`. */
function constructId(file: string): string {
  return file.replace(/(?:^|[/-])(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function variables(access: Access, platform: Platform): Record<string, string> {
  const { console, issuer, settings } = platform;
  const values: Readonly<Record<string, string | undefined>> = {
    TABLE_NAME: access.table && platform.table.tableName,
    ISSUER: (access.issuer ?? access.console) && issuer,
    AUDIENCE: access.issuer && platform.audience,
    JWKS_URI: access.issuer && platform.jwksUri,
    CONSOLE_SECRET_PARAMETER: access.console && console?.secretParameter,
    CONSOLE_SCOPE: access.console && console?.scope,
    USER_POOL_ID: access.identityProvider && platform.userPool?.id,
    MAIL_FROM: access.mail && platform.mail?.from,
    SES_IDENTITY: access.mail && platform.mail?.sesIdentity,
    BUCKET_NAME: access.files && platform.bucket.bucketName,
    SECRETS_KEY_ARN: usesSecretsKey(access) ? platform.secretsKey.keyArn : undefined,
    DELIVERY_QUEUE_URL: access.deliveryQueue && platform.deliveryQueue.queueUrl,
    POISON_RECORDS_URL: access.poisonRecords && platform.poisonRecords.queueUrl,
    IMPORT_QUEUE_URL: access.importQueue && platform.importQueue.queueUrl,
    EXPORT_QUEUE_URL: access.exportQueue && platform.exportQueue.queueUrl,
    BULK_QUEUE_URL: access.bulkQueue && platform.bulkQueue.queueUrl,
    ...Object.fromEntries((access.settings ?? []).map((name) => [name, settings[name]])),
  };
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
