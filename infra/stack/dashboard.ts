/** The dashboard of a deployment and its saved log queries. docs/runbook.md says when to use them. */
import {
  Alarm,
  AlarmStatusWidget,
  Dashboard,
  GraphWidget,
  type IAlarm,
  type IMetric,
  type IWidget,
  LogQueryWidget,
  Metric,
  PeriodOverride,
} from "aws-cdk-lib/aws-cloudwatch";
import { CfnFunction, Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { CfnQueryDefinition, LogGroup } from "aws-cdk-lib/aws-logs";
import { Queue } from "aws-cdk-lib/aws-sqs";
import { ArnFormat, Duration, Fn, Stack } from "aws-cdk-lib/core";
import { DUE_INDEX } from "#shared/db/keys.ts";
import { eventFunctions } from "../routes/routes.ts";
import { ExplainedAlarm, nameOf } from "./alarms.ts";
import type { Platform } from "./function.ts";
import { type LogQuery, logQueries } from "./queries.ts";

const WIDTH = 24;
const HEIGHT = 6;

/** Creates the dashboard. Call this last, because it shows all functions, queues and alarms of both stacks. `data` is the data stack. */
export function createDashboard(stack: Stack, platform: Platform, data: Stack): void {
  const watched = watchedIn(stack, platform);
  const alarms = [...watched.alarms, ...alarmsByNameOf(stack, data)];
  const graphs = (all: Graphs): IWidget[] =>
    Object.entries(all).map(
      ([title, left]) => new GraphWidget({ title, left, width: WIDTH / 3, height: HEIGHT, leftYAxis: { min: 0 } }),
    );
  const logGroupNamesOf = ({ source }: LogQuery): string[] =>
    (source === "access" ? [watched.accessLog] : watched.functionLogs).map(({ logGroupName }) => logGroupName);
  const table = (saved: LogQuery): IWidget => {
    const content = { logGroupNames: logGroupNamesOf(saved), queryLines: [...saved.query] };
    return new LogQueryWidget({ title: saved.title, ...content, width: WIDTH / 3, height: HEIGHT });
  };
  new Dashboard(stack, "Dashboard", {
    // The name must be unique in the account, over all regions.
    dashboardName: `${stack.stackName}-${stack.region}`,
    defaultInterval: Duration.hours(6),
    periodOverride: PeriodOverride.INHERIT,
    widgets: [
      [new AlarmStatusWidget({ title: "Alarms", alarms, width: WIDTH, height: HEIGHT })],
      [...graphs(requests(stack)), table(logQueries.latency)],
      [...graphs(capacity(platform)), table(logQueries.failed)],
      [table(logQueries.attempts), ...graphs(webhooks(watched)), table(logQueries.errors)],
      graphs(background(watched)),
    ],
  });
  for (const saved of Object.values(logQueries)) {
    // Use the CloudFormation resource, because the CDK's construct does not accept a query as one string.
    new CfnQueryDefinition(stack, `Query${saved.title.replaceAll(" ", "")}`, {
      name: `${stack.stackName}/${saved.title}`,
      queryString: saved.query.join("\n| "),
      logGroupNames: logGroupNamesOf(saved),
    });
  }
}

/** Refers to the data stack's alarms by their names and not by exported ARNs. `nameAlarms` in alarms.ts gives the reason. */
function alarmsByNameOf(stack: Stack, data: Stack): IAlarm[] {
  const alarms = data.node.findAll().filter((one) => one instanceof ExplainedAlarm);
  return alarms.map((one) => {
    const parts = { service: "cloudwatch", resource: "alarm", arnFormat: ArnFormat.COLON_RESOURCE_NAME };
    return Alarm.fromAlarmArn(stack, `Shown-${nameOf(one)}`, stack.formatArn({ ...parts, resourceName: nameOf(one) }));
  });
}

type Watched = ReturnType<typeof watchedIn>;

/** Returns what the dashboard shows. Searches the whole stack, so that a new alarm, dead-letter queue or log group needs no change here. */
function watchedIn(stack: Stack, queues: Platform) {
  const all = stack.node.findAll();
  const functions = all.filter((one) => one instanceof LambdaFunction);
  const groups = all.filter((one) => one instanceof LogGroup);
  const accessLog = groups.find(({ node }) => node.id === "AccessLog");
  const imports = queues.importQueue.deadLetterQueue?.queue;
  if (accessLog === undefined || !(imports instanceof Queue))
    throw new Error("the stack lacks its access log or a queue");
  return {
    stack,
    functionOf(file: string): LambdaFunction {
      const found = functions.find(
        ({ node: { defaultChild } }) => defaultChild instanceof CfnFunction && defaultChild.description === file,
      );
      if (found === undefined) throw new Error(`the stack has no function ${file}`);
      return found;
    },
    alarms: all.filter((one) => one instanceof Alarm),
    accessLog,
    functionLogs: groups.filter((group) => functions.some(({ logGroup }) => logGroup === group)),
    queues,
    // A queue without a dead-letter queue is itself a dead-letter queue. The dead-letter queue of imports is in the data stack.
    deadLetters: [
      ...all.filter((one) => one instanceof Queue).filter(({ deadLetterQueue }) => deadLetterQueue === undefined),
      imports,
    ],
  };
}

const MINUTE = Duration.minutes(1);

function aws(
  namespace: string,
  metricName: string,
  statistic: string,
  dimensionsMap: Record<string, string>,
  label: string,
): Metric {
  return new Metric({ namespace: `AWS/${namespace}`, metricName, statistic, dimensionsMap, label, period: MINUTE });
}

type Graphs = Readonly<Record<string, IMetric[]>>;

const ofApi = ({ stackName }: Stack, metricName: string, statistic: string, label: string): Metric =>
  aws("ApiGateway", metricName, statistic, { ApiName: stackName }, label);

const requests = (stack: Stack): Graphs => ({
  "Requests a minute": [
    ofApi(stack, "Count", "Sum", "requests"),
    ofApi(stack, "4XXError", "Sum", "4xx"),
    ofApi(stack, "5XXError", "Sum", "5xx"),
  ],
  "Latency of the API, ms": [ofApi(stack, "Latency", "p50", "p50"), ofApi(stack, "Latency", "p99", "p99")],
});

const capacity = ({ table }: Platform): Graphs => ({
  "Concurrency and throttles": [
    aws("Lambda", "ConcurrentExecutions", "Maximum", {}, "executions at once"),
    aws("Lambda", "Throttles", "Sum", {}, "throttled invocations"),
    aws("DynamoDB", "ReadThrottleEvents", "Sum", { TableName: table.tableName }, "throttled reads"),
    aws("DynamoDB", "WriteThrottleEvents", "Sum", { TableName: table.tableName }, "throttled writes"),
  ],
  // CloudWatch has separate metrics for the table and for its index.
  "Units of the table a minute": (["Read", "Write"] as const).flatMap((kind) =>
    [{}, { GlobalSecondaryIndexName: DUE_INDEX.name }].map((index) => {
      const label = `${kind.toLowerCase()} units${"GlobalSecondaryIndexName" in index ? " of the due index" : ""}`;
      const dimensions = { TableName: table.tableName, ...index };
      return aws("DynamoDB", `Consumed${kind}CapacityUnits`, "Sum", dimensions, label);
    }),
  ),
});

const ofFunction = ({ functionName }: LambdaFunction, metricName: string, statistic: string, label: string): Metric =>
  aws("Lambda", metricName, statistic, { FunctionName: functionName }, label);

/** Returns a metric of a queue. The data stack exports only the URLs of its queues, and each URL ends with the queue's name. */
function ofQueue({ stack }: Watched, queue: Queue, metricName: string, statistic: string, label: string): Metric {
  const isOwn = Stack.of(queue) === stack;
  const QueueName = isOwn ? queue.queueName : Fn.select(4, Fn.split("/", queue.queueUrl));
  return aws("SQS", metricName, statistic, { QueueName }, label);
}

/** Returns a metric that CloudWatch derives from the service's log lines. */
function ofService(
  stack: Stack,
  metricName: string,
  label: string,
  dimensionsMap: Record<string, string> = {},
): Metric {
  const namespace = stack.stackName;
  return new Metric({ namespace, metricName, statistic: "Maximum", label, dimensionsMap, period: MINUTE });
}

function webhooks(watched: Watched): Graphs {
  const { stack, queues } = watched;
  return {
    "Oldest waiting work, seconds": [
      ofService(stack, "OldestDueSeconds", "oldest due webhook"),
      ofQueue(watched, queues.deliveryQueue, "ApproximateAgeOfOldestMessage", "Maximum", "oldest delivery message"),
    ],
  };
}

function background(watched: Watched): Graphs {
  const { functionOf, queues, deadLetters } = watched;
  const VISIBLE = "ApproximateNumberOfMessagesVisible";
  const job = functionOf(eventFunctions.importJob.file);
  return {
    "Delay of stream records and webhooks, ms": [
      ofFunction(functionOf(eventFunctions.publish.file), "IteratorAge", "Maximum", "publisher"),
      ofFunction(functionOf(eventFunctions.flush.file), "IteratorAge", "Maximum", "index flush lag"),
      // The scheduled smoke test measures this metric.
      ofService(watched.stack, "WebhookDelay", "from a change to its webhook", { service: "canary" }),
    ],
    "Messages in dead-letter queues": deadLetters.map((queue) =>
      ofQueue(watched, queue, VISIBLE, "Maximum", titleOf(queue)),
    ),
    Imports: [
      ofQueue(watched, queues.importQueue, VISIBLE, "Maximum", "imports that wait"),
      ofFunction(job, "Invocations", "Sum", "runs of import jobs"),
      ofFunction(job, "Errors", "Sum", "failed runs of import jobs"),
      ofQueue(watched, queues.exportQueue, VISIBLE, "Maximum", "exports that wait"),
      ofQueue(watched, queues.bulkQueue, VISIBLE, "Maximum", "bulk jobs that wait"),
    ],
  };
}

function titleOf(queue: Queue): string {
  const alarm = queue.node.findAll().find((one) => one instanceof ExplainedAlarm);
  return alarm?.meaning.title ?? queue.node.id;
}
