/**
 * The stack of what must not be lost: table, bucket, user pool, and the queue that the bucket writes to. The service's stack
 * may be destroyed and made anew beside it.
 */
import type { Table } from "aws-cdk-lib/aws-dynamodb";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { Bucket } from "aws-cdk-lib/aws-s3";
import type { Topic } from "aws-cdk-lib/aws-sns";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import { RemovalPolicy, Stack } from "aws-cdk-lib/core";
import type { Construct } from "constructs";
import { createAlarmTopic, sendAlarms } from "./alarms.ts";
import type { DeployConfig } from "./config.ts";
import { createIdentity, type Identity } from "./identity.ts";
import { createImportQueue, letBucketTell } from "./jobs.ts";
import { createSecretsKey } from "./keys.ts";
import { dataStackName, STACK_NAME } from "./stack-name.ts";
import { createBucket, createTable } from "./storage.ts";

export interface Data {
  readonly stack: Stack;
  readonly table: Table;
  readonly bucket: Bucket;
  readonly importQueue: Queue;
  readonly secretsKey: IKey;
  readonly identity: Identity;
  /** Here, so that whoever has agreed to its mail need not do so again with each new service, and for this stack's own alarms. */
  readonly alarms: Topic;
}

export function createDataStack(scope: Construct, config: DeployConfig): Data {
  const stack = new Stack(scope, dataStackName(STACK_NAME), {
    description: "Data of the multi-tenant canvassing backend",
    terminationProtection: true,
  });
  const table = createTable(stack, config.adopted?.table);
  const importQueue = createImportQueue(stack);
  for (const queue of [importQueue, importQueue.deadLetterQueue?.queue]) {
    // A queue that is replaced keeps the messages that it has.
    queue?.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
  }
  const bucket = createBucket(stack, importQueue, config.allowedOrigins, config.adopted?.bucket);
  letBucketTell(bucket, importQueue);
  const secretsKey = createSecretsKey(stack, config.adopted?.secretsKey);
  const alarms = createAlarmTopic(stack, config.alarmEmail);
  sendAlarms(stack, alarms);
  const data = { stack, table, bucket, importQueue, secretsKey, identity: createIdentity(stack, config), alarms };
  keepExports(data, config);
  return data;
}

/**
 * An export that follows its uses goes with the last of them, and CloudFormation refuses that while the service's stack, which is
 * updated later, still has it. These stay whether they are used or not.
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
    // An adopted key or pool is known by text, which needs no export.
    ...(config.adopted?.secretsKey === undefined ? [secretsKey.keyArn] : []),
    ...(userPool === undefined || config.adopted?.userPool !== undefined
      ? []
      : [issuer, userPool.id, userPool.arn, userPool.clientId]),
  ];
  for (const value of values) if (value !== undefined) stack.exportValue(value);
}
