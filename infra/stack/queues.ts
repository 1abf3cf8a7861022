/** Creates the queues, each with a dead-letter queue and its alarm. */
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import { CfnOutput, Duration } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { eventFunctions } from "../routes/routes.ts";
import { alarm, type Meaning } from "./alarms.ts";
import { accept } from "./rules.ts";

/** The maximum of SQS, so that operators have enough time. */
const DEAD_LETTER_DAYS = 14;
/** A message keeps its age when it moves to the dead-letter queue, where it could expire at once if this were not shorter. */
const QUEUE_DAYS = 4;
/**
 * After this number of failed receives, a message moves to the dead-letter queue. A failing receiver does not count: the service sends a
 * new message for the retry.
 */
const MAX_RECEIVES = 5;

/**
 * Visibility timeout by the function's time-out. AWS recommends six, so that SQS does not deliver a message again while it is processed or
 * throttled.
 */
const VISIBILITY_TIMEOUTS = 6;

const queueDefaults = { encryption: QueueEncryption.SQS_MANAGED, enforceSSL: true } as const;

/** `consumer` determines the visibility timeout. */
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

/** The alarm of the queue is on while it contains a message. */
export function createDeadLetterQueue(scope: Construct, id: string, meaning: Meaning, name = id): Queue {
  const queue = new Queue(scope, id, { ...queueDefaults, retentionPeriod: Duration.days(DEAD_LETTER_DAYS) });
  const reason = "An operator handles the messages of this queue, so they need no further queue.";
  accept(queue, { "AwsSolutions-SQS3": reason, "Serverless-SQSRedrivePolicy": reason });
  const metric = queue.metricApproximateNumberOfMessagesVisible({ period: Duration.minutes(1), statistic: "Maximum" });
  alarm(queue, "NotEmpty", { metric, threshold: 0, ...meaning });
  nameUrl(queue, `${name}Url`);
  return queue;
}

/** `npm run dead-letters` finds the queue by this output. */
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
    // Seconds. The service delays a message by at most 900 s, so a message of this age is at least 900 s late.
    threshold: 1_800,
    periods: 5,
    title: "Delivery queue late",
    impact: "Webhooks are at least 15 minutes late, because the delivery queue is not emptied.",
  });
  return queue;
}

/** The queue of poison records. It is also the on-failure destination of the stream's event source. */
export function createPoisonRecords(scope: Construct): Queue {
  return createDeadLetterQueue(
    scope,
    // If this older id changed, CloudFormation would replace the deployed queue.
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
