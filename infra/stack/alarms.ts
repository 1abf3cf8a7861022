/** Alarms of CloudWatch, the metrics that some of them read from logs, and the topic that mails alarms to an operator. */
import {
  Alarm,
  CfnAlarm,
  ComparisonOperator,
  type IMetric,
  MathExpression,
  Metric,
  TreatMissingData,
} from "aws-cdk-lib/aws-cloudwatch";
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

export interface Meaning {
  /** The heading in docs/runbook.md. */
  readonly title: string;
  /** What the alarm means for users, in one sentence. */
  readonly impact: string;
}

interface AlarmSpec extends Meaning {
  readonly metric: IMetric;
  readonly threshold: number;
  /** How the metric is compared with the threshold. By default, the alarm goes off if the value is above the threshold. */
  readonly comparison?: ComparisonOperator;
  readonly periods?: number;
  /** Number of bad periods, among the last `periods`, that turns the alarm on. By default, all of them must be bad. */
  readonly badPeriods?: number;
  /** How a period without data is treated. By default, it is good. */
  readonly missing?: TreatMissingData;
}

/** An alarm whose description says what it means for users. `sendAlarms` writes this description, with a link to the runbook. */
export class ExplainedAlarm extends Alarm {
  readonly meaning: Meaning;

  constructor(scope: Construct, id: string, { title, impact, ...rule }: AlarmSpec) {
    super(scope, id, {
      metric: rule.metric,
      threshold: rule.threshold,
      comparisonOperator: rule.comparison ?? ComparisonOperator.GREATER_THAN_THRESHOLD,
      evaluationPeriods: rule.periods ?? 1,
      ...(rule.badPeriods !== undefined && { datapointsToAlarm: rule.badPeriods }),
      treatMissingData: rule.missing ?? TreatMissingData.NOT_BREACHING,
    });
    this.meaning = { title, impact };
  }
}

/** Returns the anchor of a heading, as GitHub and most Markdown renderers derive it. */
export const anchorOf = (title: string): string => title.toLowerCase().replaceAll(" ", "-");

const MINUTE = Duration.minutes(1);

/** Creates an alarm that goes off after three consecutive minutes with errors. One such minute is no outage: a retry may succeed. */
export function errorAlarm(watched: LambdaFunction, meaning: Meaning): void {
  const metric = watched.metricErrors({ period: MINUTE, statistic: "Sum" });
  new ExplainedAlarm(watched, "Errors", { metric, threshold: 0, periods: 3, ...meaning });
}

/** Creates an alarm that goes off after five minutes without an invocation of the function. It is for functions that run every minute. */
export function stoppedAlarm(watched: LambdaFunction, meaning: Meaning): void {
  const metric = watched.metricInvocations({ period: MINUTE, statistic: "Sum" });
  const comparison = ComparisonOperator.LESS_THAN_THRESHOLD;
  // A minute without data is bad, because Lambda reports no data for a minute without an invocation.
  const missing = TreatMissingData.BREACHING;
  new ExplainedAlarm(watched, "Stopped", { metric, threshold: 1, comparison, missing, periods: 5, ...meaning });
}

interface BatchAlarms {
  /**
   * The field `event` of log lines about failed items. The alarm counts these lines, because Lambda counts an invocation that returns
   * `batchItemFailures` as a success.
   */
  readonly failedItem: string;
  readonly metricName: string;
  readonly fails: Meaning;
  readonly throttled: Meaning;
}

/** Creates alarms on errors, failed items and refused invocations. An invocation is refused if the quota or reservation is too small. */
export function batchAlarms(watched: LambdaFunction, { failedItem, metricName, fails, throttled }: BatchAlarms): void {
  errorAlarm(watched, fails);
  const items = logMetric(watched, metricName, failedItem);
  new ExplainedAlarm(watched, "ItemErrors", { metric: items, threshold: 0, periods: 3, ...fails });
  const metric = watched.metricThrottles({ period: MINUTE, statistic: "Sum" });
  new ExplainedAlarm(watched, "Throttled", { metric, threshold: 0, periods: 3, ...throttled });
}

/** Creates an alarm that goes off if stream records are read more than `seconds` after they were written, for five minutes in a row. */
export function lagAlarm(watched: LambdaFunction, seconds: number, meaning: Meaning): void {
  const metric = watched.metric("IteratorAge", { period: MINUTE, statistic: "Maximum" });
  new ExplainedAlarm(watched, "Behind", { metric, threshold: seconds * 1_000, periods: 5, ...meaning });
}

/** The path of a field in the service's log lines (shared/log.ts). Lambda's JSON format puts these fields below `message`. */
type LogField = `$.message.${string}`;

/** Creates a metric. It is 1 in a minute with a log line of the event, or the largest value of the field `metricValue` in these lines. */
export function logMetric(
  watched: LambdaFunction,
  metricName: string,
  event: string,
  metricValue: "1" | LogField = "1",
): Metric {
  const metricNamespace = Stack.of(watched).stackName;
  const filterPattern = FilterPattern.stringValue("$.message.event" satisfies LogField, "=", event);
  const { logGroup } = watched;
  new MetricFilter(watched, metricName, { logGroup, filterPattern, metricNamespace, metricName, metricValue });
  return new Metric({ namespace: metricNamespace, metricName, period: MINUTE, statistic: "Maximum" });
}

/** The texts of the alarms on damaged rows. Each key is the name of the error that functions log for such a row. */
const damages = {
  IndexUnreadable: {
    title: "Damaged index",
    impact: "The lists and maps of a company answer 503, because its index is damaged.",
  },
  ActivityUnreadable: {
    title: "Damaged activity",
    impact: "The activity reports of a company answer 503, because a row of its activity is damaged.",
  },
} as const;
type Damage = keyof typeof damages;

export function countUnreadable(scope: Construct, logGroup: ILogGroup, damage: Damage): void {
  // A log line names the damage as the error itself, or as the cause of another error.
  const fields: LogField[] = ["$.message.error", "$.message.cause"];
  new MetricFilter(scope, damage, {
    logGroup,
    filterPattern: FilterPattern.any(...fields.map((field) => FilterPattern.stringValue(field, "=", damage))),
    metricNamespace: Stack.of(scope).stackName,
    metricName: damage,
    metricValue: "1",
  });
}

export function unreadableAlarms(stack: Stack): void {
  for (const [metricName, meaning] of Object.entries(damages)) {
    const metric = new Metric({ namespace: stack.stackName, metricName, period: MINUTE, statistic: "Sum" });
    new ExplainedAlarm(stack, metricName, { metric, threshold: 0, ...meaning });
  }
}

/** Creates the alarm on the account's quota. CloudWatch reads the quota, because several deployments may share an account. */
export function concurrencyAlarm(scope: Stack): void {
  const period = MINUTE;
  const executions = { namespace: "AWS/Lambda", metricName: "ConcurrentExecutions" };
  const running = new Metric({ ...executions, period, statistic: "Maximum" });
  new ExplainedAlarm(scope, "ConcurrencyNearLimit", {
    metric: new MathExpression({
      expression: "100 * running / SERVICE_QUOTA(running)",
      usingMetrics: { running },
      label: "percent of the quota",
      period,
    }),
    threshold: 80,
    periods: 3,
    title: "Concurrency near limit",
    impact: "Requests will fail soon, because the account runs almost as many functions at once as its quota allows.",
  });
}

/** Creates the topic that mails alarms. SNS sends no mail before the owner of the address consents. */
export function createAlarmTopic(scope: Stack, email: string | undefined): Topic {
  const key = new Key(scope, "AlarmKey", {
    description: "Encrypts alarms in the topic that mails them",
    enableKeyRotation: true,
    // The key encrypts no stored data, so it is deleted with the stack.
    removalPolicy: RemovalPolicy.DESTROY,
  });
  const topic = new Topic(scope, "Alarms", { masterKey: key, enforceSSL: true });
  // The topic has a key of its own, because CloudWatch may not use the key that AWS manages for SNS, whose policy cannot be changed.
  const cloudWatch = new ServicePrincipal("cloudwatch.amazonaws.com");
  const conditions = { StringEquals: { "aws:SourceAccount": Stack.of(scope).account } };
  const may = (actions: string[], resource: string) =>
    new PolicyStatement({ principals: [cloudWatch], actions, resources: [resource], conditions });
  key.addToResourcePolicy(may(["kms:Decrypt", "kms:GenerateDataKey*"], "*"));
  topic.addToResourcePolicy(may(["sns:Publish"], topic.topicArn));
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

/** Notifies the topic when an alarm goes off and when it is over. `runbook` is the URL of the runbook without an anchor. */
export function sendAlarms(home: IConstruct, topic: Topic, runbook: string): void {
  const action = new SnsAction(topic);
  for (const child of home.node.findAll()) {
    if (!(child instanceof ExplainedAlarm)) continue;
    child.addAlarmAction(action);
    child.addOkAction(action);
    const { title, impact } = child.meaning;
    const resource = child.node.defaultChild;
    if (resource instanceof CfnAlarm) resource.alarmDescription = `${impact} Runbook: ${runbook}#${anchorOf(title)}`;
  }
}

export const nameOf = (one: ExplainedAlarm): string => `${Stack.of(one).stackName}-${anchorOf(one.meaning.title)}`;

/** Names the alarms, so that another stack's dashboard finds them. With exported ARNs, CloudFormation would refuse to remove an alarm. */
export function nameAlarms(stack: Stack): void {
  for (const one of stack.node.findAll()) {
    const resource = one.node.defaultChild;
    if (one instanceof ExplainedAlarm && resource instanceof CfnAlarm) resource.alarmName = nameOf(one);
  }
}
