/** Makes the queues. Each has a dead-letter queue, a redrive policy, and an alarm that says what a dead letter means. */
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import { CfnOutput, Duration } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { eventFunctions } from "../routes/routes.ts";
import { alarm } from "./alarms.ts";
import { accept } from "./rules.ts";

/** The longest that SQS allows. */
const DEAD_LETTER_DAYS = 14;
/** Shorter than in a dead-letter queue, because a message keeps its age when it moves there. */
const QUEUE_DAYS = 4;
/**
 * A message that has been received this often moves to the dead-letter queue. A webhook receiver that fails does not cause this: its
 * message is deleted, and a new message starts the retry.
 */
const MAX_RECEIVES = 5;

/**
 * The queue's visibility timeout in function timeouts, as AWS recommends, so that SQS does not return a message that is being processed or
 * throttled.
 */
const VISIBILITY_TIMEOUTS = 6;

const queueDefaults = { encryption: QueueEncryption.SQS_MANAGED, enforceSSL: true } as const;

/** @param consumer the function that reads the queue; its timeout decides the visibility timeout */
function createQueue(
  scope: Construct,
  id: string,
  consumer: { readonly timeoutSeconds: number },
  impact: string,
): Queue {
  const home = new Construct(scope, id);
  const queue = new Queue(home, "Queue", {
    ...queueDefaults,
    retentionPeriod: Duration.days(QUEUE_DAYS),
    visibilityTimeout: Duration.seconds(VISIBILITY_TIMEOUTS * consumer.timeoutSeconds),
    deadLetterQueue: {
      queue: createDeadLetterQueue(home, "DeadLetters", impact, `${id}DeadLetters`),
      maxReceiveCount: MAX_RECEIVES,
    },
  });
  nameUrl(queue, `${id}Url`);
  return queue;
}

/** Makes a queue that keeps failed messages for 14 days. Its alarm is on while it has any message. */
export function createDeadLetterQueue(scope: Construct, id: string, impact: string, name = id): Queue {
  const queue = new Queue(scope, id, { ...queueDefaults, retentionPeriod: Duration.days(DEAD_LETTER_DAYS) });
  const reason = "An operator handles the messages of this queue, so they need no further queue.";
  accept(queue, { "AwsSolutions-SQS3": reason, "Serverless-SQSRedrivePolicy": reason });
  const metric = queue.metricApproximateNumberOfMessagesVisible({ period: Duration.minutes(1), statistic: "Maximum" });
  alarm(queue, "NotEmpty", { metric, above: 0, impact });
  nameUrl(queue, `${name}Url`);
  return queue;
}

/** `npm run dead-letters` finds the queue by this stack output. */
function nameUrl(queue: Queue, name: string): void {
  new CfnOutput(queue, "Url", { value: queue.queueUrl }).overrideLogicalId(name);
}

export function createDeliveryQueue(scope: Construct): Queue {
  const failed =
    "Webhook deliveries failed through a fault of the service and wait here. Receivers have not got these events. " +
    "Fix the cause, then redrive the queue. SQS keeps the messages for 14 days.";
  const queue = createQueue(scope, "Deliveries", eventFunctions.deliver, failed);
  const metric = queue.metricApproximateAgeOfOldestMessage({ period: Duration.minutes(1) });
  const impact =
    "Webhooks are late. The oldest message has waited for more than half an hour, which is twice the longest delay.";
  alarm(queue, "Late", { metric, above: 1_800, periods: 5, impact });
  return queue;
}

/**
 * Makes the queue of poison records: stream records that `publish` could not turn into events. It is also the on-failure destination of the
 * stream.
 */
export function createPoisonRecords(scope: Construct): Queue {
  return createDeadLetterQueue(
    scope,
    // Deployed queues have this older id. Another one would make CloudFormation replace the queue.
    "ParkedRecords",
    "Changes of records could not be turned into events, so their webhooks were not sent. A message holds the change " +
      "itself or, if the function gave no answer, stream positions that can be read for 24 hours.",
  );
}

const redrive = "Fix the cause, then redrive the queue. Each job resumes at the place where it stopped.";

export const createImportQueue = (scope: Construct): Queue =>
  createQueue(
    scope,
    "Imports",
    eventFunctions.importJob,
    `Imports failed through a fault of the service and wait here. Their users see them as running. ${redrive}`,
  );

export const createExportQueue = (scope: Construct): Queue =>
  createQueue(
    scope,
    "Exports",
    eventFunctions.exportJob,
    `Exports failed through a fault of the service and wait here. Their users see them as running. ${redrive}`,
  );
