/** Creates the queues. Each queue has a dead-letter queue, and an alarm that says what a message in the dead-letter queue means. */
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import { CfnOutput, Duration } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { eventFunctions } from "../routes/routes.ts";
import { alarm, type Meaning } from "./alarms.ts";
import { accept } from "./rules.ts";

/**
 * Retention of a dead-letter queue in days. It is the maximum that SQS allows, so that operators have enough time to handle the messages.
 */
const DEAD_LETTER_DAYS = 14;
/**
 * Retention of a queue in days. A message keeps its age when it moves to the dead-letter queue. So this retention must be shorter than that
 * of the dead-letter queue. Otherwise a moved message could expire there at once.
 */
const QUEUE_DAYS = 4;
/**
 * Number of times that a message is received without success before it moves to the dead-letter queue. A failing webhook receiver does not
 * cause such a move: the service then deletes the message and sends a new message for the retry.
 */
const MAX_RECEIVES = 5;

/**
 * The visibility timeout of a queue as a multiple of its function's time-out. AWS recommends six, so that SQS does not deliver a message
 * again while it is being processed or throttled.
 */
const VISIBILITY_TIMEOUTS = 6;

const queueDefaults = { encryption: QueueEncryption.SQS_MANAGED, enforceSSL: true } as const;

/** @param consumer the function that reads the queue. The queue's visibility timeout is a multiple of this function's time-out. */
function createQueue(
  scope: Construct,
  id: string,
  consumer: { readonly timeoutSeconds: number },
  failed: Meaning,
): Queue {
  const home = new Construct(scope, id);
  const queue = new Queue(home, "Queue", {
    ...queueDefaults,
    retentionPeriod: Duration.days(QUEUE_DAYS),
    visibilityTimeout: Duration.seconds(VISIBILITY_TIMEOUTS * consumer.timeoutSeconds),
    deadLetterQueue: {
      queue: createDeadLetterQueue(home, "DeadLetters", failed, `${id}DeadLetters`),
      maxReceiveCount: MAX_RECEIVES,
    },
  });
  nameUrl(queue, `${id}Url`);
  return queue;
}

/** Creates a queue that stores failed messages for 14 days. Its alarm is on while the queue contains a message. */
export function createDeadLetterQueue(scope: Construct, id: string, meaning: Meaning, name = id): Queue {
  const queue = new Queue(scope, id, { ...queueDefaults, retentionPeriod: Duration.days(DEAD_LETTER_DAYS) });
  const reason = "An operator handles the messages of this queue, so they need no further queue.";
  accept(queue, { "AwsSolutions-SQS3": reason, "Serverless-SQSRedrivePolicy": reason });
  const metric = queue.metricApproximateNumberOfMessagesVisible({ period: Duration.minutes(1), statistic: "Maximum" });
  alarm(queue, "NotEmpty", { metric, threshold: 0, ...meaning });
  nameUrl(queue, `${name}Url`);
  return queue;
}

/** Creates a stack output with the queue's URL. `npm run dead-letters` finds the queue by this output. */
function nameUrl(queue: Queue, name: string): void {
  new CfnOutput(queue, "Url", { value: queue.queueUrl }).overrideLogicalId(name);
}

export function createDeliveryQueue(scope: Construct): Queue {
  const queue = createQueue(scope, "Deliveries", eventFunctions.deliver, {
    title: "Failed deliveries",
    impact:
      "Webhook receivers have not got some events, because their deliveries failed through a fault of the service.",
  });
  const metric = queue.metricApproximateAgeOfOldestMessage({ period: Duration.minutes(1) });
  alarm(queue, "Late", {
    metric,
    // The age in seconds of the oldest message. The service delays a message on purpose by at most 900 s, the maximum of SQS. So a message
    // with an age of 1 800 s is at least 900 s late.
    threshold: 1_800,
    periods: 5,
    title: "Delivery queue late",
    impact: "Webhooks are at least 15 minutes late, because the delivery queue is not emptied.",
  });
  return queue;
}

/**
 * Creates the queue of poison records. These are stream records from which the function `publish` could not create an event. The queue is
 * also the on-failure destination of the stream's event source.
 */
export function createPoisonRecords(scope: Construct): Queue {
  return createDeadLetterQueue(
    scope,
    // This id is older than the name "poison records". If the id changed, CloudFormation would replace the deployed queue.
    "ParkedRecords",
    {
      title: "Poison records",
      impact: "Webhooks of some changes were not sent, because the changes could not be turned into events.",
    },
  );
}

export const createImportQueue = (scope: Construct): Queue =>
  createQueue(scope, "Imports", eventFunctions.importJob, {
    title: "Failed imports",
    impact: "Users see an import as running that does not run, because it failed through a fault of the service.",
  });

export const createExportQueue = (scope: Construct): Queue =>
  createQueue(scope, "Exports", eventFunctions.exportJob, {
    title: "Failed exports",
    impact: "Users see an export as running that does not run, because it failed through a fault of the service.",
  });

export const createBulkQueue = (scope: Construct): Queue =>
  createQueue(scope, "BulkJobs", eventFunctions.bulkJob, {
    title: "Failed bulk jobs",
    impact: "Users see a bulk job as running that does not run, because it failed through a fault of the service.",
  });
