/** The one stack: storage, identity, events and the API, with the outputs that clients and operators need. */
import { CfnOutput, Stack } from "aws-cdk-lib/core";
import type { Construct } from "constructs";
import { accountAlarms, createAlarmTopic, sendAlarms } from "./alarms.ts";
import { createApi } from "./api.ts";
import type { DeployConfig } from "./config.ts";
import { createDeliveryQueue, createEvents, createParkedRecords } from "./events.ts";
import type { Platform } from "./function.ts";
import { createIdentity } from "./identity.ts";
import { createExportQueue, createImportQueue, createJobs, letBucketTell } from "./jobs.ts";
import { unreadableAlarm } from "./monitoring.ts";
import { STACK_NAME } from "./stack-name.ts";
import { createBucket, createTable } from "./storage.ts";

/** `bundles` is the directory that `bundle()` wrote. */
export function createStack(scope: Construct, config: DeployConfig, bundles: string): Stack {
  const stack = new Stack(scope, STACK_NAME, { description: "Multi-tenant canvassing backend" });
  const table = createTable(stack);
  const importQueue = createImportQueue(stack);
  const bucket = createBucket(stack, importQueue, config.allowedOrigins);
  const identity = createIdentity(stack, config);
  const platform: Platform = {
    bundles,
    table,
    bucket,
    deliveryQueue: createDeliveryQueue(stack),
    parkedRecords: createParkedRecords(stack),
    importQueue,
    exportQueue: createExportQueue(stack),
    issuer: identity.issuer,
    audience: identity.audience,
    userPool: identity.userPool,
    settings: {
      WEBHOOK_URL_POLICY: config.webhookUrlPolicy,
      TIME_SCALE: String(config.timeScale),
      DELIVERY_SENDERS: String(config.capacity.deliverySenders),
    },
    capacity: config.capacity,
  };
  createEvents(stack, platform);
  createJobs(stack, platform);
  const api = createApi(stack, platform, config);
  unreadableAlarm(stack);
  accountAlarms(stack, config.capacity.accountConcurrency);
  const alarms = createAlarmTopic(stack, config.alarmEmail);
  sendAlarms(stack, alarms);
  letBucketTell(bucket, importQueue);
  outputs(stack, {
    // Without the slash at the end: paths of the OpenAPI document are appended to it.
    ApiUrl: `https://${api.restApiId}.execute-api.${stack.region}.${stack.urlSuffix}/${api.deploymentStage.stageName}`,
    TableName: table.tableName,
    BucketName: bucket.bucketName,
    Issuer: identity.issuer,
    Audience: identity.audience,
    TimeScale: String(config.timeScale),
    AlarmTopic: alarms.topicArn,
    ...(identity.userPool !== undefined && {
      UserPoolId: identity.userPool.id,
      UserPoolClientId: identity.userPool.clientId,
    }),
  });
  return stack;
}

function outputs(stack: Stack, values: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(values)) new CfnOutput(stack, name, { value });
}
