/** Creates the data stack, with the resources that must survive when the service stack is deleted and deployed again. */
import { AttributeType, BillingMode, ProjectionType, StreamViewType, Table } from "aws-cdk-lib/aws-dynamodb";
import { AccountRootPrincipal, Effect, PolicyDocument, PolicyStatement, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { type IKey, Key } from "aws-cdk-lib/aws-kms";
import {
  BlockPublicAccess,
  Bucket,
  BucketEncryption,
  type BucketProps,
  CfnBucket,
  type CorsRule,
  HttpMethods,
  ObjectOwnership,
} from "aws-cdk-lib/aws-s3";
import type { Topic } from "aws-cdk-lib/aws-sns";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import { Duration, RemovalPolicy, Stack } from "aws-cdk-lib/core";
import type { Construct } from "constructs";
import { DUE_INDEX } from "#shared/db/keys.ts";
import { COMPANY_EXPORTS } from "#shared/jobs/s3-keys.ts";
import * as limits from "#shared/limits.ts";
import type { Purpose } from "#shared/secrets/secrets.ts";
import type { Folder } from "../routes/route.ts";
import type { Console, DeployConfig } from "../settings/config.ts";
import { dataStackName, stackNameOf } from "../settings/names.ts";
import type { Retention } from "../settings/retention.ts";
import { createAlarmTopic, nameAlarms, sendAlarms } from "./alarms.ts";
import { createBackups } from "./backup.ts";
import { createBudget } from "./budget.ts";
import { createDomain } from "./domain.ts";
import { createIdentity, type Identity } from "./identity.ts";
import { createLogRole } from "./log-role.ts";
import { createQueue } from "./queues.ts";
import { keyConditions, type ServedTable } from "./rights.ts";
import { accept } from "./rules.ts";

export interface Data {
  readonly stack: Stack;
  /** The table that the service uses: that of the data stack, or a restored table. */
  readonly table: ServedTable;
  /** The data stack's table. It is `table`, unless the service uses a restored table. */
  readonly ownTable: ServedTable;
  readonly bucket: Bucket;
  readonly importQueue: Queue;
  readonly secretsKey: IKey;
  readonly identity: Identity;
  /** The topic is in this stack, so that subscribers need not confirm again when the service stack is created again. */
  readonly alarms: Topic;
}

export function createDataStack(scope: Construct, config: DeployConfig): Data {
  const stack = new Stack(scope, dataStackName(stackNameOf(config.stage)), {
    description: "Data of the multi-tenant canvassing backend",
    terminationProtection: true,
    ...(config.tags !== undefined && { tags: config.tags }),
  });
  const table = createTable(stack, config.retention, config.adopted?.table);
  const importQueue = createQueue(stack, "Imports");
  for (const queue of [importQueue, importQueue.deadLetterQueue?.queue]) {
    // A queue that CloudFormation replaces or deletes may still contain messages, so it is kept.
    queue?.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
  }
  const bucket = createBucket(stack, importQueue, config, config.adopted?.bucket);
  allowNotifications(bucket, importQueue);
  const secretsKey = createSecretsKey(stack, config.adopted?.secretsKey);
  if (config.domain !== undefined) createDomain(stack, config.domain);
  createLogRole(stack);
  const alarms = createAlarmTopic(stack, config.alarmEmail);
  const { monthlyBudget, alarmEmail } = config;
  if (monthlyBudget !== undefined && alarmEmail !== undefined) createBudget(stack, monthlyBudget, alarmEmail);
  const identity = createIdentity(stack, config);
  const data = { stack, table, ownTable: table, bucket, importQueue, secretsKey, identity, alarms };
  keepExports(data, config);
  const active = restoredTable(stack, config);
  if (config.backup !== undefined)
    createBackups(stack, config.backup, active === undefined ? [table] : [table, active], config.retention.logDays);
  sendAlarms(stack, alarms, config.watch.runbook);
  nameAlarms(stack);
  createProtectedLast(stack, table);
  return active === undefined ? data : { ...data, table: active };
}

/** Returns the restored table, if it is set. The own table stays: CloudFormation cannot replace a table that another stack imports. */
const restoredTable = (scope: Construct, { activeTable }: DeployConfig): ServedTable | undefined =>
  activeTable && Table.fromTableAttributes(scope, "ActiveTable", activeTable);

/** Creates the user pool and table last: their deletion protection would prevent the rollback of a first deployment that fails later. */
function createProtectedLast(stack: Stack, table: Table): void {
  const userPool = stack.node.tryFindChild("UserPool");
  // The backup selection (`Backups/Plan/Table`) is missing in this list, because it needs the table.
  const backups = [
    ...["Vault", "Role", "RestoreRole", "Plan/Resource", "Jobs", "JobEvents", "FailedJobs", "Failed", "CopyEvents"],
    "Missing",
  ];
  const others = ["Imports", "Files", "SecretsKey", "Domain", "ApiLogs", "AlarmKey", "Alarms", "Budget"];
  for (const path of [...others, ...backups.map((part) => `Backups/${part}`)]) {
    const other = stack.node.findAll().find(({ node }) => node.path === `${stack.node.path}/${path}`);
    if (other !== undefined) (userPool ?? table).node.addDependency(other);
  }
  if (userPool !== undefined) table.node.addDependency(userPool);
}

/** Creates the table, or adopts `tableName`, the table of an earlier deployment. */
function createTable(scope: Construct, { recoveryDays }: Retention, tableName: string | undefined): Table {
  const table = new Table(scope, "Table", {
    ...(tableName !== undefined && { tableName }),
    partitionKey: { name: "pk", type: AttributeType.STRING },
    sortKey: { name: "sk", type: AttributeType.STRING },
    billingMode: BillingMode.PAY_PER_REQUEST,
    stream: StreamViewType.NEW_AND_OLD_IMAGES,
    timeToLiveAttribute: "expiresAt",
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true, recoveryPeriodInDays: recoveryDays },
    deletionProtection: true,
    removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
  });
  table.addGlobalSecondaryIndex({
    indexName: DUE_INDEX.name,
    partitionKey: { name: DUE_INDEX.partitionKey, type: AttributeType.STRING },
    sortKey: { name: DUE_INDEX.sortKey, type: AttributeType.STRING },
    projectionType: ProjectionType.KEYS_ONLY,
  });
  return table;
}

const BULK_KEPT_DAYS = limits.bulkKeptMs / 86_400_000;

/** Days after which the bucket deletes the files of each folder. The API promises exported files for `exportKeptDays`, a day less. */
const lifetimeDays = ({ importFileDays }: Retention): Record<Folder, number> => ({
  uploads: importFileDays,
  imports: importFileDays,
  exports: limits.exportKeptDays + 1,
  // A bulk job can be paused for `BULK_KEPT_DAYS`, and its result is available as long after its end. Five days are a margin.
  bulk: 2 * BULK_KEPT_DAYS + 5,
});

/** Days for which an export of a company is kept. They are few, because the export is a second copy of personal data. */
const COMPANY_EXPORT_DAYS = 30;

/** Returns the properties of a bucket that outlives its stack and deletes the files of each folder after the given number of days. */
export const privateBucket = (lifetimes: Readonly<Record<string, number>> = {}): BucketProps => ({
  blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
  objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
  encryption: BucketEncryption.S3_MANAGED,
  enforceSSL: true,
  minimumTLSVersion: 1.2,
  removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
  lifecycleRules: [
    { id: "abandoned-uploads", abortIncompleteMultipartUploadAfter: Duration.days(1) },
    ...Object.entries(lifetimes).map(([folder, days]) => ({
      id: folder,
      prefix: `${folder}/`,
      expiration: Duration.days(days),
    })),
  ],
});

const corsRule = (origins: readonly string[]): CorsRule => ({
  allowedOrigins: [...origins],
  allowedMethods: [HttpMethods.PUT, HttpMethods.GET, HttpMethods.HEAD],
  allowedHeaders: ["content-type", "if-none-match", "x-amz-checksum-sha256"],
  exposedHeaders: ["ETag", "Content-Disposition"],
  maxAge: 600,
});

/** The CORS rule for uploads. Without a domain, it allows all CloudFront hosts: the console's is not known, and only the API signs URLs. */
function consoleCorsRule({ localUrl, domain }: Console): CorsRule {
  const origin = localUrl ?? (domain === undefined ? "https://*.cloudfront.net" : `https://${domain.name}`);
  return {
    allowedOrigins: [origin],
    allowedMethods: [HttpMethods.PUT],
    allowedHeaders: ["content-type", "if-none-match"],
    maxAge: 600,
  };
}

/** Creates the bucket, or adopts `bucketName` of an earlier deployment. `uploads` gets a message for each new file in `uploads/`. */
function createBucket(
  scope: Construct,
  uploads: Queue,
  { allowedOrigins, retention, console }: Pick<DeployConfig, "allowedOrigins" | "retention" | "console">,
  bucketName: string | undefined,
): Bucket {
  const cors = [
    ...(allowedOrigins.length > 0 ? [corsRule(allowedOrigins)] : []),
    ...(console === undefined ? [] : [consoleCorsRule(console)]),
  ];
  const bucket = new Bucket(scope, "Files", {
    ...(bucketName !== undefined && { bucketName }),
    ...(cors.length > 0 && { cors }),
    ...privateBucket({ ...lifetimeDays(retention), [COMPANY_EXPORTS]: COMPANY_EXPORT_DAYS }),
  });
  const resource = bucket.node.defaultChild;
  // Set the property directly, because the construct's own method would deploy an additional function.
  if (resource instanceof CfnBucket) resource.notificationConfiguration = uploadNotifications(uploads);
  accept(bucket, {
    "AwsSolutions-S1":
      "The service's functions reach the bucket, and users by URLs for single files, whose creation is in the access log of the API. The use of a URL is not logged.",
  });
  return bucket;
}

const uploadNotifications = (queue: Queue) => ({
  queueConfigurations: [
    {
      event: "s3:ObjectCreated:*",
      queue: queue.queueArn,
      filter: { s3Key: { rules: [{ name: "prefix", value: "uploads/" }] } },
    },
  ],
});

/** Lets S3 send messages. S3 checks this when it configures notifications, so the policy exists before the bucket, and cannot name it. */
function allowNotifications(bucket: Bucket, queue: Queue): void {
  const { account } = Stack.of(queue);
  queue.addToResourcePolicy(
    new PolicyStatement({
      actions: ["sqs:SendMessage"],
      principals: [new ServicePrincipal("s3.amazonaws.com")],
      resources: [queue.queueArn],
      conditions: { StringEquals: { "aws:SourceAccount": account } },
    }),
  );
  bucket.node.addDependency(queue);
}

/** The actions by which the account manages the key. None of them decrypts data. Only `kms:PutKeyPolicy` can change who may decrypt. */
const keyAdministration = [
  ...["kms:DescribeKey", "kms:GetKeyPolicy", "kms:GetKeyRotationStatus", "kms:ListResourceTags", "kms:ListKeyPolicies"],
  ...["kms:PutKeyPolicy", "kms:UpdateKeyDescription", "kms:EnableKey", "kms:DisableKey"],
  ...["kms:EnableKeyRotation", "kms:DisableKeyRotation", "kms:TagResource", "kms:UntagResource"],
  ...["kms:ScheduleKeyDeletion", "kms:CancelKeyDeletion"],
];

/** Creates the key that encrypts the companies' data keys. Without it, nobody can sign in to the console, and no webhook can be signed. */
function createSecretsKey(scope: Construct, adoptedArn: string | undefined): IKey {
  if (adoptedArn !== undefined) return Key.fromKeyArn(scope, "SecretsKey", adoptedArn);
  return new Key(scope, "SecretsKey", {
    description:
      "Wraps the data keys that encrypt the secrets of webhooks, the tokens of sessions and the cursors of phones",
    enableKeyRotation: true,
    removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    policy: new PolicyDocument({
      statements: [
        new PolicyStatement({
          sid: "Administration",
          effect: Effect.ALLOW,
          principals: [new AccountRootPrincipal()],
          actions: keyAdministration,
          resources: ["*"],
        }),
        // IAM policies of the account decide who may use the key. The conditions restrict this to roles with the right tags.
        keyUse("SigningFunctions", "webhook-secrets"),
        keyUse("SessionFunctions", "console-sessions"),
        keyUse("CursorFunctions", "sync-cursors"),
      ],
    }),
  });
}

const keyUse = (sid: string, purpose: Purpose): PolicyStatement =>
  new PolicyStatement({
    sid,
    effect: Effect.ALLOW,
    principals: [new AccountRootPrincipal()],
    actions: ["kms:Decrypt", "kms:GenerateDataKey"],
    resources: ["*"],
    conditions: { StringEquals: keyConditions(purpose) },
  });

/** Keeps exports. The CDK would remove an unused one, which CloudFormation refuses while the deployed service stack imports the value. */
function keepExports(
  { stack, table, bucket, importQueue, secretsKey, identity: { issuer, userPool }, alarms }: Data,
  config: DeployConfig,
): void {
  const values = [
    table.tableName,
    table.tableArn,
    table.tableStreamArn,
    bucket.bucketName,
    bucket.bucketArn,
    importQueue.queueUrl,
    importQueue.queueArn,
    importQueue.deadLetterQueue?.queue.queueUrl,
    alarms.topicArn,
    // The ARN of an adopted key is a literal string in the template, which needs no export.
    ...(config.adopted?.secretsKey === undefined ? [secretsKey.keyArn] : []),
    ...(userPool === undefined || config.adopted?.userPool !== undefined
      ? []
      : [issuer, userPool.id, userPool.arn, userPool.clientId]),
  ];
  for (const value of values) if (value !== undefined) stack.exportValue(value);
}
