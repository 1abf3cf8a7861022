/**
 * Makes the alarms with a text on their impact, the metrics that some alarms read from logs, and the topic that mails alarms to an
 * operator.
 */
import { Alarm, ComparisonOperator, Metric, TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import { PolicyStatement, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import type { Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { FilterPattern, type ILogGroup, MetricFilter } from "aws-cdk-lib/aws-logs";
import { Topic } from "aws-cdk-lib/aws-sns";
import { EmailSubscription } from "aws-cdk-lib/aws-sns-subscriptions";
import { Annotations, Duration, RemovalPolicy, Stack } from "aws-cdk-lib/core";
import type { Construct, IConstruct } from "constructs";
import { accept } from "./rules.ts";

export interface AlarmSpec {
  readonly metric: Metric;
  readonly above: number;
  /** Tells operators what the alarm means for users and what to do. */
  readonly impact: string;
  readonly periods?: number;
}

export function alarm(scope: Construct, id: string, { metric, above, impact, periods = 1 }: AlarmSpec): Alarm {
  return new Alarm(scope, id, {
    metric,
    threshold: above,
    comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
    evaluationPeriods: periods,
    treatMissingData: TreatMissingData.NOT_BREACHING,
    alarmDescription: impact,
  });
}

/** Goes off after three consecutive minutes with errors. A single error is no outage, because a retry may succeed. */
export function errorAlarm(watched: LambdaFunction, impact: string): void {
  const metric = watched.metricErrors({ period: Duration.minutes(1), statistic: "Sum" });
  alarm(watched, "Errors", { metric, above: 0, periods: 3, impact });
}

/**
 * Goes off when Lambda refused invocations in three consecutive minutes, because the account's quota or the function's reservation is too
 * small.
 */
export function throttleAlarm(watched: LambdaFunction, impact: string): void {
  const metric = watched.metricThrottles({ period: Duration.minutes(1), statistic: "Sum" });
  alarm(watched, "Throttled", { metric, above: 0, periods: 3, impact });
}

/** Goes off when a function reads stream records later than `seconds` after they were written. */
export function lagAlarm(watched: LambdaFunction, seconds: number, impact: string): void {
  const metric = watched.metric("IteratorAge", { period: Duration.minutes(1), statistic: "Maximum" });
  alarm(watched, "Behind", { metric, above: seconds * 1_000, periods: 5, impact });
}

/** A field of the service's log lines (shared/log.ts). Lambda's JSON format puts them below `message`. */
type LogField = `$.message.${string}`;

export interface LogMetricSpec {
  readonly event: string;
  /** The field whose value becomes the metric, or 1 to count lines. */
  readonly value: "1" | LogField;
  /**
   * Use only fields with few different values: each value is a metric, and CloudWatch disables a filter that makes 1 000 within an hour.
   */
  readonly dimensions?: Readonly<Record<string, LogField>>;
}

export function logMetric(scope: Construct, metricName: string, logGroup: ILogGroup, spec: LogMetricSpec): Metric {
  const metricNamespace = Stack.of(scope).stackName;
  const { event, value, dimensions } = spec;
  new MetricFilter(scope, metricName, {
    logGroup,
    filterPattern: FilterPattern.stringValue("$.message.event" satisfies LogField, "=", event),
    metricNamespace,
    metricName,
    metricValue: value,
    ...(dimensions !== undefined && { dimensions: { ...dimensions } }),
  });
  return new Metric({ namespace: metricNamespace, metricName, period: Duration.minutes(1), statistic: "Maximum" });
}

const UNREADABLE = "IndexUnreadable";

/** Counts log lines that report a missing or damaged part of a company index. */
export function countUnreadable(scope: Construct, logGroup: ILogGroup): void {
  // A damaged index is logged in one of two ways: as the error itself, or as the cause of the error with which a request failed.
  const fields: LogField[] = ["$.message.error", "$.message.cause"];
  new MetricFilter(scope, UNREADABLE, {
    logGroup,
    filterPattern: FilterPattern.any(...fields.map((field) => FilterPattern.stringValue(field, "=", UNREADABLE))),
    metricNamespace: Stack.of(scope).stackName,
    metricName: UNREADABLE,
    metricValue: "1",
  });
}

export function unreadableAlarm(stack: Stack): Alarm {
  const metric = { namespace: stack.stackName, metricName: UNREADABLE };
  return alarm(stack, UNREADABLE, {
    metric: new Metric({ ...metric, period: Duration.minutes(1), statistic: "Sum" }),
    above: 0,
    impact:
      "The index of a company is damaged. Its lists and maps answer 503 until `npm run index -- rebuild` has run.",
  });
}

/** The alarm goes off when this share of the account's concurrency is in use. Lambda throttles invocations only when all of it is. */
const CONCURRENCY_SHARE = 0.8;

/** Makes the alarms on Lambda's metrics of the whole account and region, which have no function name. */
export function accountAlarms(scope: Stack, accountConcurrency: number): void {
  const accountMetric = (metricName: string, statistic: string): Metric =>
    new Metric({ namespace: "AWS/Lambda", metricName, period: Duration.minutes(1), statistic });
  alarm(scope, "ConcurrencyNearLimit", {
    metric: accountMetric("ConcurrentExecutions", "Maximum"),
    above: Math.floor(accountConcurrency * CONCURRENCY_SHARE),
    periods: 3,
    impact:
      "The account runs almost as many functions at once as its quota allows. Soon requests will fail and webhooks will be late. " +
      "Ask AWS for a higher quota of concurrent executions.",
  });
  alarm(scope, "FunctionsThrottled", {
    metric: accountMetric("Throttles", "Sum"),
    above: 0,
    periods: 3,
    impact:
      "Lambda refuses invocations because too many functions run at once. Requests of users fail, and background work is late for " +
      "as long as this lasts.",
  });
}

/** SNS asks the e-mail address for consent and sends no alarm before it. */
export function createAlarmTopic(scope: Stack, email: string | undefined): Topic {
  const key = new Key(scope, "AlarmKey", {
    description: "Encrypts alarms in the topic that mails them",
    enableKeyRotation: true,
    // The topic stores nothing that is encrypted with the key, so the key can be deleted with the stack.
    removalPolicy: RemovalPolicy.DESTROY,
  });
  const topic = new Topic(scope, "Alarms", { masterKey: key, enforceSSL: true });
  // CloudWatch may not use the AWS managed key, whose policy cannot be changed, so the topic has its own.
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
      "Serverless-SNSRedrivePolicy":
        "SNS retries a mail for more than six hours, and the alarm stays visible in CloudWatch.",
    });
  } else {
    Annotations.of(scope).addWarningV2(
      "canvassing:alarmEmail",
      "Alarms have no recipient: deploy with -c alarmEmail=ADDRESS, or subscribe an address to the topic of the output AlarmTopic.",
    );
  }
  return topic;
}

export function sendAlarms(home: IConstruct, topic: Topic): void {
  const action = new SnsAction(topic);
  for (const child of home.node.findAll()) if (child instanceof Alarm) child.addAlarmAction(action);
}
