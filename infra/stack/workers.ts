/** The functions that no route invokes, with their event sources. */
import { CfnRule } from "aws-cdk-lib/aws-events";
import {
  CfnEventSourceMapping,
  type CfnEventSourceMappingProps,
  CfnPermission,
  type Function as LambdaFunction,
} from "aws-cdk-lib/aws-lambda";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import { Duration } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { flushTypes } from "#shared/company-index/write/flush-stream.ts";
import { publishedPatterns } from "#shared/webhooks/events/row-events.ts";
import { eventFunctions } from "../routes/routes.ts";
import { FLUSH_WINDOW_SECONDS } from "../settings/capacity.ts";
import { batchAlarms, ExplainedAlarm, errorAlarm, lagAlarm, logMetric, stoppedAlarm } from "./alarms.ts";
import { called, createFunction, type FunctionSpec, type Platform } from "./function.ts";
import { createDeadLetterQueue } from "./queues.ts";
import { allow } from "./rights.ts";
import { accept } from "./rules.ts";

/** Retries of the publisher. Lambda halves a failing batch, so seven isolate a bad record of 100. The others are for temporary faults. */
const STREAM_RETRIES = 10;
/** Retries of a flush. They are few, because a failing flush delays others in its shard. The next write starts another flush. */
const FLUSH_RETRIES = 3;
/** Seconds until a late delivery sets off an alarm. The sweeper replaces lost messages in half the time, so more delay means a fault. */
const OVERDUE_SECONDS = 900;
/**
 * Lambda gives up a record of this age, and reports only its position. The stream keeps records for 24 hours, so an operator then has one
 * hour to read the record.
 */
const STREAM_MAX_AGE_SECONDS = 23 * 3_600;

export function createEvents(scope: Construct, platform: Platform): void {
  const home = new Construct(scope, "Events");
  createPublisher(home, platform);
  createFlusher(home, platform);
  createDeliverer(home, platform);
  createSweeper(home, platform);
}

function createPublisher(scope: Construct, platform: Platform): void {
  const publish = createStreamReader(scope, platform, {
    ...eventFunctions.publish,
    failed: platform.poisonRecords,
    source: { batchSize: 100, maximumRetryAttempts: STREAM_RETRIES },
    patterns: publishedPatterns(),
  });
  batchAlarms(publish, {
    failedItem: "record failed",
    metricName: "FailedRecords",
    fails: { title: "Publisher fails", impact: "No webhook is sent, because changes are not turned into events." },
    throttled: {
      title: "Publisher throttled",
      impact: "Webhooks are late, because too many functions run and Lambda throttles the publisher.",
    },
  });
  lagAlarm(publish, 60, {
    title: "Publisher late",
    impact: "Webhooks are late, because events are published more than a minute after the change.",
  });
}

/** Creates the index flush. The stream records only show when a flush is worthwhile: the flush reads the changes from the table. */
function createFlusher(scope: Construct, platform: Platform): void {
  const destination = createDeadLetterQueue(scope, "UnflushedIndexes", {
    title: "Unflushed indexes",
    impact: "Reads of a company stay exact but cost more with every write, because its index was not flushed.",
  });
  const flush = createStreamReader(scope, platform, {
    ...eventFunctions.flush,
    failed: destination,
    statements: [allow(["sqs:SendMessage"], [destination.queueArn])],
    source: {
      batchSize: 500,
      maximumBatchingWindowInSeconds: FLUSH_WINDOW_SECONDS,
      maximumRetryAttempts: FLUSH_RETRIES,
    },
    patterns: [{ dynamodb: { NewImage: { type: { S: flushTypes } } } }],
  });
  batchAlarms(flush, {
    failedItem: "index not flushed",
    metricName: "FailedFlushes",
    fails: {
      title: "Index flush fails",
      impact: "Reads stay exact but cost more with every write, because company indexes are not flushed.",
    },
    throttled: {
      title: "Index flush throttled",
      impact: "Reads stay exact but cost more, because too many functions run and Lambda throttles the index flush.",
    },
  });
  lagAlarm(flush, 300, {
    title: "Index flush late",
    impact: "Reads stay exact but cost more, because company indexes are flushed more than five minutes late.",
  });
}

interface StreamReader extends FunctionSpec {
  readonly failed: Queue;
  readonly source: Pick<
    CfnEventSourceMappingProps,
    "batchSize" | "maximumBatchingWindowInSeconds" | "maximumRetryAttempts"
  >;
  readonly patterns: readonly object[];
}

/** Creates a function that reads the table's stream in order, from the oldest record. */
function createStreamReader(
  scope: Construct,
  platform: Platform,
  { failed, source, patterns, statements = [], ...spec }: StreamReader,
): LambdaFunction {
  const { tableStreamArn: stream } = platform.table;
  if (stream === undefined) throw new Error("the table has no stream");
  const reads = allow(["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"], [stream]);
  const reader = createFunction(scope, platform, { ...spec, statements: [reads, ...statements] });
  new CfnEventSourceMapping(reader, "Stream", {
    ...source,
    eventSourceArn: stream,
    startingPosition: "TRIM_HORIZON",
    parallelizationFactor: 1,
    bisectBatchOnFunctionError: true,
    maximumRecordAgeInSeconds: STREAM_MAX_AGE_SECONDS,
    destinationConfig: { onFailure: { destination: failed.queueArn } },
    functionName: called(reader, spec.file, platform).functionName,
    functionResponseTypes: ["ReportBatchItemFailures"],
    filterCriteria: { filters: patterns.map((pattern) => ({ pattern: JSON.stringify(pattern) })) },
  });
  return reader;
}

function createDeliverer(scope: Construct, platform: Platform): void {
  const deliver = createQueueReader(scope, platform, {
    ...eventFunctions.deliver,
    queue: platform.deliveryQueue,
    batchSize: 10,
    concurrency: platform.capacity.deliverySenders,
    // The chain of messages ends after a delivery's last attempt, or when a webhook has no more waiting deliveries.
    recursion:
      "The function sends a delivery back to the queue it reads if the delivery is not due, needs a retry or waits for its receiver.",
  });
  new ExplainedAlarm(platform.deliveryQueue, "Late", {
    metric: platform.deliveryQueue.metricApproximateAgeOfOldestMessage({ period: Duration.minutes(1) }),
    // Seconds. The service delays a message by at most 900 s, so a message of this age is at least 900 s late.
    threshold: 1_800,
    periods: 5,
    title: "Delivery queue late",
    impact: "Webhooks are at least 15 minutes late, because the delivery queue is not emptied.",
  });
  new ExplainedAlarm(deliver, "Missing", {
    metric: logMetric(deliver, "MissingDeliveries", "delivery missing"),
    threshold: 0,
    title: "Delivery missing",
    impact: "A webhook receiver has lost an event, because the row of a queued delivery is not in the table.",
  });
  batchAlarms(deliver, {
    failedItem: "message failed",
    metricName: "FailedDeliveryMessages",
    fails: {
      title: "Delivery function fails",
      impact: "Webhooks are late, because their deliveries fail through a fault of the service.",
    },
    throttled: {
      title: "Delivery function throttled",
      impact: "Webhooks are late, because too many functions run and Lambda throttles the delivery function.",
    },
  });
}

function createSweeper(scope: Construct, platform: Platform): void {
  const sweep = createFunction(scope, platform, eventFunctions.sweep);
  const rule = new CfnRule(sweep, "EveryMinute", {
    scheduleExpression: "rate(1 minute)",
    description: "Finds due deliveries that have no message.",
    targets: [{ id: "sweep", arn: sweep.functionArn, input: JSON.stringify({ assume: "messages-kept" }) }],
  });
  accept(rule, { "Serverless-EventBusDLQ": "If a run is lost, the next run does its work a minute later." });
  new CfnPermission(sweep, "ByRule", {
    action: "lambda:InvokeFunction",
    functionName: sweep.functionArn,
    principal: "events.amazonaws.com",
    sourceArn: rule.attrArn,
  });
  const event = "deliveries waiting";
  // This metric also contains deliveries of paused webhooks and failing receivers. The alarm uses `OverdueSeconds`, which does not.
  logMetric(sweep, "OldestDueSeconds", event, "$.message.oldestDueSeconds");
  new ExplainedAlarm(sweep, "Overdue", {
    metric: logMetric(sweep, "OverdueSeconds", event, "$.message.overdueSeconds"),
    threshold: OVERDUE_SECONDS,
    periods: 5,
    title: "Deliveries overdue",
    impact: "Webhooks are more than 15 minutes late, and neither a pause nor their receiver is the reason.",
  });
  errorAlarm(sweep, {
    title: "Sweeper fails",
    impact: "Webhooks, imports, exports and bulk jobs whose message was lost wait, because the sweeper fails.",
  });
  stoppedAlarm(sweep, {
    title: "Sweeper stopped",
    impact: "Webhooks, imports, exports and bulk jobs whose message was lost wait, because the sweeper does not run.",
  });
}

export function createJobs(scope: Construct, platform: Platform): void {
  const home = new Construct(scope, "JobWork");
  const jobs = [
    { ...eventFunctions.importJob, queue: platform.importQueue },
    { ...eventFunctions.exportJob, queue: platform.exportQueue },
    { ...eventFunctions.bulkJob, queue: platform.bulkQueue },
  ];
  for (const job of jobs) {
    createQueueReader(home, platform, {
      ...job,
      batchSize: 1,
      concurrency: platform.capacity.jobs,
      // The chain of messages ends when the whole file is imported or exported, or all records are changed.
      recursion: "The function sends a job back to the queue it reads if the job does not end within one invocation.",
      logsEachInvocation: true,
    });
  }
}

interface QueueReader extends FunctionSpec {
  readonly queue: Queue;
  readonly batchSize: number;
  readonly concurrency: number;
}

/** Creates a function that reads a queue. Without a batching window, Lambda passes messages to the function at once. */
function createQueueReader(
  scope: Construct,
  platform: Platform,
  { queue: { queueArn }, batchSize, concurrency, ...spec }: QueueReader,
): LambdaFunction {
  const receives = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"];
  const reader = createFunction(scope, platform, { ...spec, statements: [allow(receives, [queueArn])] });
  const messages = new CfnEventSourceMapping(reader, "Queue", {
    functionName: called(reader, spec.file, platform).functionName,
    eventSourceArn: queueArn,
    batchSize,
    functionResponseTypes: ["ReportBatchItemFailures"],
    scalingConfig: { maximumConcurrency: concurrency },
  });
  accept(messages, {
    "Serverless-LambdaEventSourceMappingDestination":
      "The dead-letter queue of the source queue keeps the complete failed messages.",
  });
  return reader;
}
