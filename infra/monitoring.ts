/** A queue is never without its dead letters, redrive, alarm and a sentence that says what the alarm means. */
import { Alarm, ComparisonOperator, Metric, TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import { FilterPattern, type ILogGroup, MetricFilter } from "aws-cdk-lib/aws-logs";
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import { CfnOutput, Duration, Stack } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { accept } from "./finding.ts";

/** The longest that SQS keeps a message. */
const DEAD_LETTER_DAYS = 14;
/** Shorter than the dead letters' time: a message keeps its age when it moves there. */
const QUEUE_DAYS = 4;
/** A message is tried this often before it counts as our fault and moves to the dead letters. */
const MAX_RECEIVES = 5;

export interface GuardedQueueSpec {
  readonly visibilitySeconds: number;
  /** What it means to the customer that a message lies among the dead letters, and what to do. */
  readonly impact: string;
}

/** A standard queue with dead letters and their alarm. */
export function guardedQueue(scope: Construct, id: string, { visibilitySeconds, impact }: GuardedQueueSpec): Queue {
  const home = new Construct(scope, id);
  const queue = new Queue(home, "Queue", {
    ...queueDefaults,
    retentionPeriod: Duration.days(QUEUE_DAYS),
    visibilityTimeout: Duration.seconds(visibilitySeconds),
    deadLetterQueue: {
      queue: deadLetterQueue(home, "DeadLetters", impact, `${id}DeadLetters`),
      maxReceiveCount: MAX_RECEIVES,
    },
  });
  nameUrl(queue, `${id}Url`);
  return queue;
}

/** Where failed work is parked for 14 days, with the alarm that says so. */
export function deadLetterQueue(scope: Construct, id: string, impact: string, name = id): Queue {
  const queue = new Queue(scope, id, { ...queueDefaults, retentionPeriod: Duration.days(DEAD_LETTER_DAYS) });
  const lastStation = "It holds what has failed for an operator: there is nowhere further to send it.";
  accept(queue, { "AwsSolutions-SQS3": lastStation, "Serverless-SQSRedrivePolicy": lastStation });
  const metric = queue.metricApproximateNumberOfMessagesVisible({ period: Duration.minutes(1), statistic: "Maximum" });
  alarm(queue, "NotEmpty", { metric, above: 0, impact });
  nameUrl(queue, `${name}Url`);
  return queue;
}

/** Operators find the queue by this output (infra/cli/dead-letters.ts). */
function nameUrl(queue: Queue, name: string): void {
  new CfnOutput(queue, "Url", { value: queue.queueUrl }).overrideLogicalId(name);
}

/** SQS takes a policy that covers a single queue only, so that each queue has one of its own. */
const queueDefaults = { encryption: QueueEncryption.SQS_MANAGED, enforceSSL: true } as const;

export interface AlarmSpec {
  readonly metric: Metric;
  readonly above: number;
  readonly impact: string;
  /** Periods in a row; default 1. */
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

export interface LogMetricSpec {
  /** The `event` of the log lines. */
  readonly event: string;
  /** A field of what was logged, or 1 for each line. */
  readonly value: "1" | LogField;
  /** Fields of few values: each value is a metric, and CloudWatch turns a filter off that makes a thousand within an hour. */
  readonly dimensions?: Readonly<Record<string, LogField>>;
}

/** Lambda's JSON lines have what a function logs (shared/log.ts) in `message`. */
type LogField = `$.message.${string}`;

/** A metric of what a function logs, in the namespace of the stack. */
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

/** Counts the log lines of a function that came upon a company index with a part missing or damaged. */
export function countUnreadable(scope: Construct, logGroup: ILogGroup): void {
  // Named as the error is, which a request answers by another one.
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
  const about = { namespace: stack.stackName, metricName: UNREADABLE };
  return alarm(stack, UNREADABLE, {
    metric: new Metric({ ...about, period: Duration.minutes(1), statistic: "Sum" }),
    above: 0,
    impact:
      "The index of a company is damaged: its lists and maps answer 503 until `npm run index -- rebuild` has run.",
  });
}
