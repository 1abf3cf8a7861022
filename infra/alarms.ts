/** Where alarms go: a topic that sends mail, and the alarms on what all functions share. */
import { Alarm, Metric } from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import { PolicyStatement, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { Topic } from "aws-cdk-lib/aws-sns";
import { EmailSubscription } from "aws-cdk-lib/aws-sns-subscriptions";
import { Annotations, Duration, RemovalPolicy, Stack } from "aws-cdk-lib/core";
import type { IConstruct } from "constructs";
import { accept } from "./finding.ts";
import { alarm } from "./monitoring.ts";

/** Of the account's concurrency: above it, some more load would be refused. */
const CONCURRENCY_SHARE = 0.8;

/** SNS asks the address for its consent once; until then nothing is sent to it. */
export function createAlarmTopic(scope: Stack, email: string | undefined): Topic {
  const key = new Key(scope, "AlarmKey", {
    description: "Encrypts alarms on their way to people",
    enableKeyRotation: true,
    // It encrypts messages in passing: nothing is stored under it.
    removalPolicy: RemovalPolicy.DESTROY,
  });
  const topic = new Topic(scope, "Alarms", { masterKey: key, enforceSSL: true });
  // CloudWatch cannot publish to a topic under the key that AWS manages, since nobody can let it use that key.
  const cloudWatch = new ServicePrincipal("cloudwatch.amazonaws.com");
  const sameAccount = { StringEquals: { "aws:SourceAccount": Stack.of(scope).account } };
  key.addToResourcePolicy(
    new PolicyStatement({
      principals: [cloudWatch],
      actions: ["kms:Decrypt", "kms:GenerateDataKey*"],
      resources: ["*"],
      conditions: sameAccount,
    }),
  );
  topic.addToResourcePolicy(
    new PolicyStatement({
      principals: [cloudWatch],
      actions: ["sns:Publish"],
      resources: [topic.topicArn],
      conditions: sameAccount,
    }),
  );
  if (email !== undefined) {
    accept(topic.addSubscription(new EmailSubscription(email)), {
      "Serverless-SNSRedrivePolicy": "SNS tries an address for more than six hours, and the alarm stays to be seen.",
    });
  } else {
    Annotations.of(scope).addWarningV2(
      "canvassing:alarmEmail",
      "Alarms reach nobody: deploy with -c alarmEmail=ADDRESS, or subscribe somebody to the topic of the output AlarmTopic.",
    );
  }
  return topic;
}

/** Every alarm at or below `home` goes to the topic. */
export function sendAlarms(home: IConstruct, topic: Topic): void {
  const action = new SnsAction(topic);
  for (const child of home.node.findAll()) if (child instanceof Alarm) child.addAlarmAction(action);
}

/** On metrics of Lambda that have no function's name: they count all functions of the account in the region. */
export function accountAlarms(scope: Stack, accountConcurrency: number): void {
  const ofAccount = (metricName: string, statistic: string): Metric =>
    new Metric({ namespace: "AWS/Lambda", metricName, period: Duration.minutes(1), statistic });
  alarm(scope, "ConcurrencyNearLimit", {
    metric: ofAccount("ConcurrentExecutions", "Maximum"),
    above: Math.floor(accountConcurrency * CONCURRENCY_SHARE),
    periods: 3,
    impact:
      "The account nearly runs as many functions at once as it may: soon requests fail and webhooks come late. Ask AWS for a " +
      "higher quota of concurrent executions.",
  });
  alarm(scope, "FunctionsThrottled", {
    metric: ofAccount("Throttles", "Sum"),
    above: 0,
    periods: 3,
    impact:
      "Functions are refused because too many run at once: requests of users fail, and background work is late by as long as it lasts.",
  });
}
