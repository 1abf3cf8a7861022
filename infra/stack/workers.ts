/** The functions that no route invokes, with their event sources. */
import { CfnRule } from "aws-cdk-lib/aws-events";
import type { PolicyStatement } from "aws-cdk-lib/aws-iam";
import { CfnEventSourceMapping, CfnPermission, type Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { flushTypes } from "#shared/company-index/write/flush-stream.ts";
import { publishedPatterns } from "#shared/webhooks/events/row-events.ts";
import type { EventFunction } from "../routes/route.ts";
import { eventFunctions } from "../routes/routes.ts";
import { FLUSH_WINDOW_SECONDS } from "../settings/capacity.ts";
import { alarm, batchErrorAlarms, errorAlarm, lagAlarm, logMetric, stoppedAlarm, throttleAlarm } from "./alarms.ts";
import { called, createFunction, type Platform } from "./function.ts";
import { createDeadLetterQueue } from "./queues.ts";
import { allow, type ServedTable } from "./rights.ts";
import { accept } from "./rules.ts";

/**
 * Retries of a batch of stream records, which Lambda halves after each failure. Seven failures isolate a bad record among 100. The rest is
 * for temporary faults.
 */
const STREAM_RETRIES = 10;
/** The number is small, because a failing flush delays others in the same stream shard. The company's next write starts another flush. */
const FLUSH_RETRIES = 3;
/** The sweeper replaces a lost queue message within half of these seconds, so a longer delay means a fault of the service. */
const OVERDUE_SECONDS = 900;
/**
 * Lambda gives up a record at this age, and reports only its position. The stream stores records for 24 hours, so an operator has one hour
 * to read it.
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
  const publish = createFunction(scope, platform, {
    ...eventFunctions.publish,
    statements: [readsStream(platform.table)],
  });
  new CfnEventSourceMapping(publish, "Stream", {
    ...streamSource(platform.table, platform.poisonRecords),
    functionName: called(publish, eventFunctions.publish.file, platform).functionName,
    batchSize: 100,
    maximumRetryAttempts: STREAM_RETRIES,
    functionResponseTypes: ["ReportBatchItemFailures"],
    filterCriteria: filterOf(publishedPatterns()),
  });
  batchErrorAlarms(
    publish,
    { event: "record failed", metricName: "FailedRecords" },
    { title: "Publisher fails", impact: "No webhook is sent, because changes are not turned into events." },
  );
  throttleAlarm(publish, {
    title: "Publisher throttled",
    impact: "Webhooks are late, because too many functions run and Lambda throttles the publisher.",
  });
  lagAlarm(publish, 60, {
    title: "Publisher late",
    impact: "Webhooks are late, because events are published more than a minute after the change.",
  });
}

/** The stream records only show when a flush is worthwhile. It reads the changes from the table. */
function createFlusher(scope: Construct, platform: Platform): void {
  const destination = createDeadLetterQueue(scope, "UnflushedIndexes", {
    title: "Unflushed indexes",
    impact: "Reads of a company stay exact but cost more with every write, because its index was not flushed.",
  });
  const flush = createFunction(scope, platform, {
    ...eventFunctions.flush,
    statements: [readsStream(platform.table), allow(["sqs:SendMessage"], [destination.queueArn])],
  });
  new CfnEventSourceMapping(flush, "Stream", {
    ...streamSource(platform.table, destination),
    functionName: called(flush, eventFunctions.flush.file, platform).functionName,
    batchSize: 500,
    maximumBatchingWindowInSeconds: FLUSH_WINDOW_SECONDS,
    maximumRetryAttempts: FLUSH_RETRIES,
    functionResponseTypes: ["ReportBatchItemFailures"],
    filterCriteria: filterOf([{ dynamodb: { NewImage: { type: { S: flushTypes } } } }]),
  });
  batchErrorAlarms(
    flush,
    { event: "index not flushed", metricName: "FailedFlushes" },
    {
      title: "Index flush fails",
      impact: "Reads stay exact but cost more with every write, because company indexes are not flushed.",
    },
  );
  throttleAlarm(flush, {
    title: "Index flush throttled",
    impact: "Reads stay exact but cost more, because too many functions run and Lambda throttles the index flush.",
  });
  lagAlarm(flush, 300, {
    title: "Index flush late",
    impact: "Reads stay exact but cost more, because company indexes are flushed more than five minutes late.",
  });
}

const readsStream = (table: ServedTable): PolicyStatement =>
  allow(["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"], [streamOf(table)]);

/** Reads the stream in order, from the oldest record. Lambda sends a message to `failed` for records that it gives up. */
const streamSource = (table: ServedTable, failed: Queue) => ({
  eventSourceArn: streamOf(table),
  startingPosition: "TRIM_HORIZON",
  parallelizationFactor: 1,
  bisectBatchOnFunctionError: true,
  maximumRecordAgeInSeconds: STREAM_MAX_AGE_SECONDS,
  destinationConfig: { onFailure: { destination: failed.queueArn } },
});

const filterOf = (patterns: readonly object[]) => ({
  filters: patterns.map((pattern) => ({ pattern: JSON.stringify(pattern) })),
});

function streamOf(table: ServedTable): string {
  if (table.tableStreamArn === undefined) throw new Error("the table has no stream");
  return table.tableStreamArn;
}

function createDeliverer(scope: Construct, platform: Platform): void {
  const deliver = createFunction(scope, platform, {
    ...eventFunctions.deliver,
    // The chain of messages ends after a delivery's last attempt, or when a webhook has no more waiting deliveries.
    recursion:
      "The function sends a delivery back to the queue it reads if the delivery is not due, needs a retry or waits for its receiver.",
    statements: [readsQueue(platform.deliveryQueue)],
  });
  readQueue(deliver, platform.deliveryQueue, {
    functionName: called(deliver, eventFunctions.deliver.file, platform).functionName,
    batchSize: 10,
    concurrency: platform.capacity.deliverySenders,
  });
  const missing = logMetric(deliver, "MissingDeliveries", deliver.logGroup, { event: "delivery missing", value: "1" });
  alarm(deliver, "Missing", {
    metric: missing,
    threshold: 0,
    title: "Delivery missing",
    impact: "A webhook receiver has lost an event, because the row of a queued delivery is not in the table.",
  });
  batchErrorAlarms(
    deliver,
    { event: "message failed", metricName: "FailedDeliveryMessages" },
    {
      title: "Delivery function fails",
      impact: "Webhooks are late, because their deliveries fail through a fault of the service.",
    },
  );
  throttleAlarm(deliver, {
    title: "Delivery function throttled",
    impact: "Webhooks are late, because too many functions run and Lambda throttles the delivery function.",
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
  logMetric(sweep, "OldestDueSeconds", sweep.logGroup, { event, value: "$.message.oldestDueSeconds" });
  const overdue = logMetric(sweep, "OverdueSeconds", sweep.logGroup, { event, value: "$.message.overdueSeconds" });
  alarm(sweep, "Overdue", {
    metric: overdue,
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
  createJob(home, platform, eventFunctions.importJob, platform.importQueue);
  createJob(home, platform, eventFunctions.exportJob, platform.exportQueue);
  createJob(home, platform, eventFunctions.bulkJob, platform.bulkQueue);
}

function createJob(home: Construct, platform: Platform, spec: EventFunction, queue: Queue): void {
  const job = createFunction(home, platform, {
    ...spec,
    // The chain of messages ends when the whole file is imported or exported, or all records are changed.
    recursion: "The function sends a job back to the queue it reads if the job does not end within one invocation.",
    logsEachInvocation: true,
    statements: [readsQueue(queue)],
  });
  readQueue(job, queue, {
    functionName: called(job, spec.file, platform).functionName,
    batchSize: 1,
    concurrency: platform.capacity.jobs,
  });
}

const readsQueue = ({ queueArn }: Queue): PolicyStatement =>
  allow(
    ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"],
    [queueArn],
  );

interface QueueReading {
  readonly functionName: string;
  readonly batchSize: number;
  readonly concurrency: number;
}

/** Without a batching window, Lambda passes messages to the function at once. */
function readQueue(
  reader: LambdaFunction,
  { queueArn }: Queue,
  { functionName, batchSize, concurrency }: QueueReading,
): void {
  const messages = new CfnEventSourceMapping(reader, "Queue", {
    functionName,
    eventSourceArn: queueArn,
    batchSize,
    functionResponseTypes: ["ReportBatchItemFailures"],
    scalingConfig: { maximumConcurrency: concurrency },
  });
  accept(messages, {
    "Serverless-LambdaEventSourceMappingDestination":
      "The dead-letter queue of the source queue keeps the complete failed messages.",
  });
}
