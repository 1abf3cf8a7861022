/**
 * Creates the data stack. It contains the resources that must survive when the service stack is deleted and deployed again: the table with
 * its backups, the bucket, the user pool, the key that encrypts the companies' data keys, the queue of uploaded import files, the topic of
 * the alarms, the role for API Gateway's logs, and the API's own domain name.
 */
import { AttributeType, BillingMode, ProjectionType, StreamViewType, Table } from "aws-cdk-lib/aws-dynamodb";
import { AccountRootPrincipal, Effect, PolicyDocument, PolicyStatement, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { type IKey, Key } from "aws-cdk-lib/aws-kms";
import {
  BlockPublicAccess,
  Bucket,
  BucketEncryption,
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
import { createDomain } from "./domain.ts";
import { createIdentity, type Identity } from "./identity.ts";
import { createLogRole } from "./log-role.ts";
import { createImportQueue } from "./queues.ts";
import { keyConditions, type ServedTable } from "./rights.ts";
import { accept } from "./rules.ts";

export interface Data {
  readonly stack: Stack;
  /** The table that the service uses. It is the table of the data stack, or a restored table. */
  readonly table: ServedTable;
  /** The data stack's own table. It is `table`, unless the service uses a restored table. */
  readonly ownTable: ServedTable;
  readonly bucket: Bucket;
  readonly importQueue: Queue;
  readonly secretsKey: IKey;
  readonly identity: Identity;
  /**
   * The topic that mails alarms. It is in the data stack, because this stack has alarms, too. Another reason is that subscribers need not
   * confirm their address again when the service stack is created again.
   */
  readonly alarms: Topic;
}

export function createDataStack(scope: Construct, config: DeployConfig): Data {
  const stack = new Stack(scope, dataStackName(stackNameOf(config.stage)), {
    description: "Data of the multi-tenant canvassing backend",
    terminationProtection: true,
  });
  const table = createTable(stack, config.retention, config.adopted?.table);
  const importQueue = createImportQueue(stack);
  for (const queue of [importQueue, importQueue.deadLetterQueue?.queue]) {
    // If CloudFormation replaces a queue, it must not delete the old queue, because the old queue may still contain messages.
    queue?.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
  }
  const bucket = createBucket(stack, importQueue, config, config.adopted?.bucket);
  allowNotifications(bucket, importQueue);
  const secretsKey = createSecretsKey(stack, config.adopted?.secretsKey);
  if (config.domain !== undefined) createDomain(stack, config.domain);
  createLogRole(stack);
  const alarms = createAlarmTopic(stack, config.alarmEmail);
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

/**
 * Returns the restored table, if the service uses one. The data stack's own table remains in the stack, because CloudFormation cannot
 * replace a table whose name and ARNs another stack imports.
 */
const restoredTable = (scope: Construct, { activeTable }: DeployConfig): ServedTable | undefined =>
  activeTable && Table.fromTableAttributes(scope, "ActiveTable", activeTable);

/**
 * Makes CloudFormation create the user pool after all other resources, and the table after the user pool. Both have deletion protection, so
 * CloudFormation cannot delete them. If a first deployment failed after it had created one of them, CloudFormation could not roll back, and
 * an operator would have to repair the stack by hand.
 */
function createProtectedLast(stack: Stack, table: Table): void {
  const userPool = stack.node.tryFindChild("UserPool");
  // The parts of the backups that are created before the table. The backup selection is not one of them, because it needs the table.
  const backups = [
    "Vault",
    "Role",
    "RestoreRole",
    "Plan/Resource",
    "Jobs",
    "JobEvents",
    "FailedJobs",
    "Failed",
    "CopyEvents",
    "Missing",
  ];
  const others = ["Imports", "Files", "SecretsKey", "Domain", "ApiLogs", "AlarmKey", "Alarms"];
  for (const path of [...others, ...backups.map((part) => `Backups/${part}`)]) {
    const other = stack.node.findAll().find(({ node }) => node.path === `${stack.node.path}/${path}`);
    if (other !== undefined) (userPool ?? table).node.addDependency(other);
  }
  if (userPool !== undefined) table.node.addDependency(userPool);
}

/** @param tableName the name of the table of an earlier deployment. If it is undefined, a new table is created. */
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

/**
 * Returns for each folder the number of days after which the bucket deletes its files. The API promises that an exported file exists for
 * `exportKeptDays`, so the bucket deletes it only a day after that.
 */
const lifetimeDays = ({ importFileDays }: Retention): Record<Folder, number> => ({
  uploads: importFileDays,
  imports: importFileDays,
  exports: limits.exportKeptDays + 1,
  // A bulk job can be paused for `BULK_KEPT_DAYS`, and its result is available for the same time after its end. So its files must exist for
  // twice this time. Five days are a margin.
  bulk: 2 * BULK_KEPT_DAYS + 5,
});

/**
 * Number of days after which an export of a whole company is deleted. The time is short, because the export is a second copy of personal
 * data.
 */
const COMPANY_EXPORT_DAYS = 30;

/** Allows web pages of these origins to upload and download files with presigned URLs. */
const corsRule = (origins: readonly string[]): CorsRule => ({
  allowedOrigins: [...origins],
  allowedMethods: [HttpMethods.PUT, HttpMethods.GET, HttpMethods.HEAD],
  allowedHeaders: ["content-type", "if-none-match", "x-amz-checksum-sha256"],
  exposedHeaders: ["ETag", "Content-Disposition"],
  maxAge: 600,
});

/**
 * Allows the console to upload files with presigned URLs. Without a domain of its own, the console gets a host name from CloudFront. This
 * name is not known when the data stack is deployed, so the rule allows all hosts of CloudFront. A page on another CloudFront host gains
 * nothing by this rule, because only the API issues presigned URLs.
 */
function consoleCorsRule({ localUrl, domain }: Console): CorsRule {
  const origin = localUrl ?? (domain === undefined ? "https://*.cloudfront.net" : `https://${domain.name}`);
  return {
    allowedOrigins: [origin],
    allowedMethods: [HttpMethods.PUT],
    allowedHeaders: ["content-type", "if-none-match"],
    maxAge: 600,
  };
}

/**
 * @param uploads the queue that gets a message for each new file in the folder `uploads`
 * @param bucketName the bucket of an earlier deployment. If it is undefined, a new bucket is created.
 */
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
    blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
    objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
    encryption: BucketEncryption.S3_MANAGED,
    enforceSSL: true,
    minimumTLSVersion: 1.2,
    ...(cors.length > 0 && { cors }),
    removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    lifecycleRules: [
      { id: "abandoned-uploads", abortIncompleteMultipartUploadAfter: Duration.days(1) },
      ...Object.entries({ ...lifetimeDays(retention), [COMPANY_EXPORTS]: COMPANY_EXPORT_DAYS }).map(
        ([folder, days]) => ({
          id: folder,
          prefix: `${folder}/`,
          expiration: Duration.days(days),
        }),
      ),
    ],
  });
  const resource = bucket.node.defaultChild;
  // The construct's own method for notifications would deploy an additional function. So the property of the CloudFormation resource is
  // set.
  if (resource instanceof CfnBucket) resource.notificationConfiguration = uploadNotifications(uploads);
  accept(bucket, {
    "AwsSolutions-S1": "Only the service's functions reach the bucket, and their request logs name each access.",
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

/**
 * Allows S3 to send messages to the queue. When CloudFormation configures the bucket's notifications, S3 checks whether the queue's policy
 * permits them. So the policy must exist before the bucket, and its condition can name only the account and not the bucket.
 */
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

/**
 * Actions that administrators may perform with the key. None of these actions decrypts data. `kms:PutKeyPolicy` is the only one that can
 * change who may decrypt.
 */
const keyAdministration = [
  ...["kms:DescribeKey", "kms:GetKeyPolicy", "kms:GetKeyRotationStatus", "kms:ListResourceTags", "kms:ListKeyPolicies"],
  ...["kms:PutKeyPolicy", "kms:UpdateKeyDescription", "kms:EnableKey", "kms:DisableKey"],
  ...["kms:EnableKeyRotation", "kms:DisableKeyRotation", "kms:TagResource", "kms:UntagResource"],
  ...["kms:ScheduleKeyDeletion", "kms:CancelKeyDeletion"],
];

/**
 * Creates the KMS key that encrypts the companies' data keys. Without this key, no webhook can be signed, nobody can sign in to the
 * console, and no app can read the feed of changes. So CloudFormation does not delete the key together with the stack.
 */
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
        // The principal is the account, so IAM policies decide who may use the key. The conditions restrict this to roles with the right
        // tags.
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

/**
 * Exports values of the data stack to the service stack, even if the service stack does not use them. By default, the CDK exports only the
 * values that another stack uses. If a new release of the service stack no longer used a value, the CDK would remove its export.
 * CloudFormation updates the data stack before the service stack. It would refuse to remove the export, because the deployed service stack
 * would still import the value.
 */
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
    // The name of an adopted key or user pool is a literal string in the template, so it needs no export.
    ...(config.adopted?.secretsKey === undefined ? [secretsKey.keyArn] : []),
    ...(userPool === undefined || config.adopted?.userPool !== undefined
      ? []
      : [issuer, userPool.id, userPool.arn, userPool.clientId]),
  ];
  for (const value of values) if (value !== undefined) stack.exportValue(value);
}
