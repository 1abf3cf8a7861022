/** What the table's stream sets going: publish, the delivery queue, deliver and the sweeper; and the flush of company indexes. */

import type { Metric } from "aws-cdk-lib/aws-cloudwatch";
import type { Table } from "aws-cdk-lib/aws-dynamodb";
import { CfnRule } from "aws-cdk-lib/aws-events";
import { CfnEventSourceMapping, CfnPermission, type Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import { Duration } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { DELTA_TYPE } from "#shared/company-index/delta.ts";
import { publishedTypes } from "#shared/webhooks/events/publish.ts";
import { accept } from "./finding.ts";
import { allow, createFunction, type Platform } from "./function.ts";
import { alarm, deadLetterQueue, guardedQueue, logMetric } from "./monitoring.ts";
import { eventFunctions } from "./routes/routes.ts";

/** Repeats of a failing stream batch; bisected, a bad record is alone after 7 of them. */
const STREAM_RETRIES = 10;
/** A flush that failed is tried again with the company's next writes, and must not hold up other companies meanwhile. */
const FLUSH_RETRIES = 3;
/** Twice what the sweeper takes at most to find what has no message. */
const OVERDUE_SECONDS = 900;
/** The stream itself forgets after 24 h; parked an hour earlier, a record can still be read by its position. */
const STREAM_MAX_AGE_SECONDS = 23 * 3_600;

/** AWS asks for six times the function's timeout, so that a message in work or throttled is not handed out twice. */
export function createDeliveryQueue(scope: Construct): Queue {
  const queue = guardedQueue(scope, "Deliveries", {
    visibilitySeconds: 6 * eventFunctions.deliver.timeoutSeconds,
    impact:
      "Webhook deliveries failed by our own fault and wait here with their message. Receivers have not got these " +
      "events. Mend the cause, then redrive the queue; nothing is lost for 14 days.",
  });
  const metric = queue.metricApproximateAgeOfOldestMessage({ period: Duration.minutes(1) });
  const impact = "Webhooks arrive late: the oldest message waits for more than half an hour, twice the longest delay.";
  alarm(queue, "Late", { metric, above: 1_800, periods: 5, impact });
  return queue;
}

/** Also the event source's destination for what the function did not answer to. */
export function createParkedRecords(scope: Construct): Queue {
  return deadLetterQueue(
    scope,
    "ParkedRecords",
    "Changes of records could not be turned into events: their webhooks were not sent. A message holds the change " +
      "itself or, when the function did not answer, stream positions that can be read for 24 hours.",
  );
}

export function createEvents(scope: Construct, platform: Platform): void {
  const home = new Construct(scope, "Events");
  createPublisher(home, platform);
  createFlusher(home, platform);
  createDeliverer(home, platform);
  createSweeper(home, platform);
}

function createPublisher(scope: Construct, platform: Platform): void {
  const publish = createFunction(scope, platform, {
    ...eventFunctions.publish,
    statements: [readsStream(platform.table)],
  });
  new CfnEventSourceMapping(publish, "Stream", {
    ...streamSource(publish, platform.table, platform.parkedRecords),
    batchSize: 100,
    maximumRetryAttempts: STREAM_RETRIES,
    functionResponseTypes: ["ReportBatchItemFailures"],
    filterCriteria: ofTypes(publishedTypes),
  });
  errorAlarm(publish, "Changes are not turned into events: webhooks stand still until this function works again.");
  throttleAlarm(publish, "Changes wait to be turned into events, because too many functions run: webhooks come late.");
  behindAlarm(publish, 60, "Events are published more than a minute after the change: webhooks arrive late.");
}

/** Its records only say that there is something to flush: what to flush is in the table. */
function createFlusher(scope: Construct, platform: Platform): void {
  const impact =
    "A company's index was not flushed: its reads stay exact and get dearer with every write, until the index is " +
    "rebuilt. A message holds stream positions; once the cause is mended the next writes flush what was left.";
  const destination = deadLetterQueue(scope, "UnflushedIndexes", impact);
  const flush = createFunction(scope, platform, {
    ...eventFunctions.flush,
    statements: [readsStream(platform.table), allow(["sqs:SendMessage"], [destination.queueArn])],
  });
  new CfnEventSourceMapping(flush, "Stream", {
    ...streamSource(flush, platform.table, destination),
    batchSize: 500,
    maximumRetryAttempts: FLUSH_RETRIES,
    functionResponseTypes: ["ReportBatchItemFailures"],
    filterCriteria: ofTypes([DELTA_TYPE]),
  });
  errorAlarm(flush, "Company indexes are not flushed: reads stay exact and get dearer with every write.");
  throttleAlarm(
    flush,
    "Company indexes wait to be flushed, because too many functions run: reads stay exact and get dearer.",
  );
  behindAlarm(flush, 300, "Company indexes are flushed more than five minutes late: reads stay exact and get dearer.");
}

const readsStream = (table: Table) =>
  allow(
    ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"],
    [streamOf(table)],
  );

/** In order, from the first record that the stream still has; what is given up goes to `failed`. */
const streamSource = (target: LambdaFunction, table: Table, failed: Queue) => ({
  functionName: target.functionName,
  eventSourceArn: streamOf(table),
  startingPosition: "TRIM_HORIZON",
  parallelizationFactor: 1,
  bisectBatchOnFunctionError: true,
  maximumRecordAgeInSeconds: STREAM_MAX_AGE_SECONDS,
  destinationConfig: { onFailure: { destination: failed.queueArn } },
});

const ofTypes = (types: readonly string[]) => ({
  filters: [{ pattern: JSON.stringify({ dynamodb: { NewImage: { type: { S: types } } } }) }],
});

function createDeliverer(scope: Construct, platform: Platform): void {
  const { queueArn } = platform.deliveryQueue;
  const deliver = createFunction(scope, platform, {
    ...eventFunctions.deliver,
    // A chain ends: with the window of a delay, with the plan of attempts, or with what waits for a receiver that takes no more.
    recursion: "It sends a delivery that is not due yet, is tried again or waits for its receiver to its own queue.",
    statements: [
      allow(
        ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"],
        [queueArn],
      ),
    ],
  });
  const messages = new CfnEventSourceMapping(deliver, "Queue", {
    functionName: deliver.functionName,
    eventSourceArn: queueArn,
    // What there is, without waiting for more.
    batchSize: 10,
    functionResponseTypes: ["ReportBatchItemFailures"],
    scalingConfig: { maximumConcurrency: platform.capacity.deliverySenders },
  });
  accept(messages, {
    "Serverless-LambdaEventSourceMappingDestination": "A queue's failed messages go to its own dead letters, whole.",
  });
  logMetric(deliver, "Attempts", deliver.logGroup, {
    event: "attempted",
    value: "1",
    dimensions: { Result: "$.message.result" },
  });
  const missing = logMetric(deliver, "MissingDeliveries", deliver.logGroup, { event: "delivery missing", value: "1" });
  const impact =
    "A webhook delivery was to be sent and its row is not in the table: a receiver has lost an event. The log names the " +
    "company; `npm run webhooks -- reconcile` names all that is missing.";
  alarm(deliver, "Missing", { metric: missing, above: 0, impact });
  errorAlarm(deliver, "Webhook deliveries fail by our own fault; they are repeated and end among the dead letters.");
  throttleAlarm(deliver, "Webhook deliveries wait, because too many functions run: webhooks come late.");
}

function createSweeper(scope: Construct, platform: Platform): void {
  const sweep = createFunction(scope, platform, eventFunctions.sweep);
  const rule = new CfnRule(sweep, "EveryMinute", {
    scheduleExpression: "rate(1 minute)",
    description: "Finds deliveries that are due and have no message.",
    targets: [{ id: "sweep", arn: sweep.functionArn, input: JSON.stringify({ assume: "messages-kept" }) }],
  });
  accept(rule, { "Serverless-EventBusDLQ": "A run that is lost is made good by the next one, a minute later." });
  new CfnPermission(sweep, "ByRule", {
    action: "lambda:InvokeFunction",
    functionName: sweep.functionArn,
    principal: "events.amazonaws.com",
    sourceArn: rule.attrArn,
  });
  const late = lagMetrics(sweep);
  const impact =
    "Webhook deliveries are due for more than 15 minutes although neither a pause nor their receiver holds them up: " +
    "webhooks stand still or the senders are too few.";
  alarm(sweep, "Overdue", { metric: late, above: OVERDUE_SECONDS, periods: 5, impact });
  errorAlarm(sweep, "Deliveries whose message was lost are not found: their webhooks wait until the sweeper works.");
}

/** Gives how late the latest is of what nothing but the service itself holds up; `OldestDueSeconds` counts the others too. */
function lagMetrics(sweep: LambdaFunction): Metric {
  const { logGroup } = sweep;
  const event = "deliveries waiting";
  logMetric(sweep, "OldestDueSeconds", logGroup, { event, value: "$.message.oldestDueSeconds" });
  return logMetric(sweep, "OverdueSeconds", logGroup, { event, value: "$.message.overdueSeconds" });
}

/** One error may be a passing fault that the retry mends; errors in three of three minutes are not. */
export function errorAlarm(watched: LambdaFunction, impact: string): void {
  const metric = watched.metricErrors({ period: Duration.minutes(1), statistic: "Sum" });
  alarm(watched, "Errors", { metric, above: 0, periods: 3, impact });
}

/** Not enough of the account's concurrency, or of what is reserved for the function, in three of three minutes. */
function throttleAlarm(watched: LambdaFunction, impact: string): void {
  const metric = watched.metricThrottles({ period: Duration.minutes(1), statistic: "Sum" });
  alarm(watched, "Throttled", { metric, above: 0, periods: 3, impact });
}

/** How old the records are that a function reads from a stream. */
function behindAlarm(watched: LambdaFunction, seconds: number, impact: string): void {
  const metric = watched.metric("IteratorAge", { period: Duration.minutes(1), statistic: "Maximum" });
  alarm(watched, "Behind", { metric, above: seconds * 1_000, periods: 5, impact });
}

function streamOf(table: Table): string {
  if (table.tableStreamArn === undefined) throw new Error("the table has no stream");
  return table.tableStreamArn;
}
