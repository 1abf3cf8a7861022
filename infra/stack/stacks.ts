/** Creates and connects the data stack and the service stack. */
import { CfnOutput, Stack } from "aws-cdk-lib/core";
import type { Construct } from "constructs";
import type { Route } from "../routes/route.ts";
import { routes } from "../routes/routes.ts";
import type { DeployConfig } from "../settings/config.ts";
import { stackNameOf } from "../settings/names.ts";
import { retentionOutput } from "../settings/retention.ts";
import { concurrencyAlarm, sendAlarms, unreadableAlarms } from "./alarms.ts";
import { createApi } from "./api.ts";
import { createCanary } from "./canary.ts";
import { createConsole } from "./console.ts";
import { createDashboard } from "./dashboard.ts";
import { createDataStack } from "./data-stack.ts";
import { urlOf } from "./domain.ts";
import type { Platform } from "./function.ts";
import { createDeadLetterQueue, createQueue } from "./queues.ts";
import { moveStepByStep } from "./rollout.ts";
import { protectApi } from "./web-acl.ts";
import { createEvents, createJobs } from "./workers.ts";

export interface Stacks {
  readonly data: Stack;
  readonly service: Stack;
}

/** Creates both stacks. `bundles` is the directory into which `bundle()` has written the functions. */
export function createStacks(
  scope: Construct,
  config: DeployConfig,
  bundles: string,
  table: readonly Route[] = routes,
): Stacks {
  const data = createDataStack(scope, config);
  const { bucket, importQueue, secretsKey, identity } = data;
  const service = new Stack(scope, stackNameOf(config.stage), {
    description: "Multi-tenant canvassing backend",
    // CloudFormation accepts templates of at most one megabyte, and indentation counts.
    suppressTemplateIndentation: true,
    ...(config.tags !== undefined && { tags: config.tags }),
  });
  const platform: Platform = {
    bundles,
    table: data.table,
    bucket,
    deliveryQueue: createQueue(service, "Deliveries"),
    // This queue is also the on-failure destination of the publisher's event source. Its id stays, because with another id CloudFormation
    // would replace the queue.
    poisonRecords: createDeadLetterQueue(service, "ParkedRecords", {
      title: "Poison records",
      impact: "Webhooks of some changes were not sent, because the changes could not be turned into events.",
    }),
    importQueue,
    secretsKey,
    exportQueue: createQueue(service, "Exports"),
    bulkQueue: createQueue(service, "BulkJobs"),
    ...identity,
    mail: config.mail,
    console: config.console,
    settings: {
      WEBHOOK_URL_POLICY: config.webhookUrlPolicy,
      TIME_SCALE: String(config.timeScale),
      DELIVERY_SENDERS: String(config.capacity.deliverySenders),
      CHANGES_AT_ONCE: String(config.capacity.changesAtOnce),
    },
    capacity: config.capacity,
    logDays: config.retention.logDays,
  };
  createEvents(service, platform);
  createJobs(service, platform);
  const api = createApi(service, platform, config, table);
  const { console } = config;
  const served = console && createConsole(service, api, platform, { ...config, console });
  const apiUrl =
    config.domain !== undefined
      ? urlOf(config.domain)
      : `https://${api.restApiId}.execute-api.${service.region}.${service.urlSuffix}/${api.deploymentStage.stageName}`;
  if (config.watch.canary) createCanary(service, platform, apiUrl);
  if (config.webAcl) {
    const isBehindCloudFront = console !== undefined && console.localUrl === undefined;
    protectApi(service, api, config.capacity.company, isBehindCloudFront);
  }
  unreadableAlarms(service);
  concurrencyAlarm(service);
  if (config.rollout === "canary") moveStepByStep(service);
  sendAlarms(service, data.alarms, config.watch.runbook);
  createDashboard(service, platform, data.stack);
  outputs(service, {
    // The URL has no slash at its end, because clients append the paths of the OpenAPI document.
    ApiUrl: apiUrl,
    ...(served !== undefined && { ConsoleUrl: served.url }),
    TableName: data.table.tableName,
    // After a switch to a restored table, this table still contains the companies' data, so `npm run company` erases a company there, too.
    OwnTableName: data.ownTable.tableName,
    Retention: retentionOutput(config.retention, config.backup),
    BucketName: bucket.bucketName,
    SecretsKeyArn: secretsKey.keyArn,
    Issuer: identity.issuer,
    Audience: identity.audience,
    TimeScale: String(config.timeScale),
    AlarmTopic: data.alarms.topicArn,
    ...(identity.userPool !== undefined && {
      UserPoolId: identity.userPool.id,
      UserPoolClientId: identity.userPool.clientId,
    }),
    // `npm run dead-letters` finds the queues by outputs of the service stack. These queues are in the data stack.
    ImportsUrl: importQueue.queueUrl,
    ...(importQueue.deadLetterQueue !== undefined && {
      ImportsDeadLettersUrl: importQueue.deadLetterQueue.queue.queueUrl,
    }),
  });
  served?.publish();
  return { data: data.stack, service };
}

function outputs(stack: Stack, values: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(values)) new CfnOutput(stack, name, { value });
}
