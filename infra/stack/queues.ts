/** Creates the queues, each with a dead-letter queue and its alarm. */
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import { CfnOutput, Duration } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import type { EventFunction } from "../routes/route.ts";
import { eventFunctions } from "../routes/routes.ts";
import { ExplainedAlarm, type Meaning } from "./alarms.ts";
import { accept } from "./rules.ts";

/** Days for which a dead-letter queue keeps a message: the maximum of SQS, so that operators have enough time. */
const DEAD_LETTER_DAYS = 14;
/**
 * Days for which any other queue keeps a message. They are fewer than `DEAD_LETTER_DAYS`, because a message keeps its age when it moves to
 * the dead-letter queue, and must not expire there at once.
 */
const QUEUE_DAYS = 4;
/** Failed receives before a message is a dead letter. A failing webhook receiver does not count: its retry has a message of its own. */
const MAX_RECEIVES = 5;

/** The visibility timeout as a multiple of the function's time-out. AWS recommends six, so that SQS repeats no message in progress. */
const VISIBILITY_TIMEOUTS = 6;

const queueDefaults = { encryption: QueueEncryption.SQS_MANAGED, enforceSSL: true } as const;

interface QueueSpec {
  /** The function that reads the queue. Its time-out determines the visibility timeout. */
  readonly consumer: EventFunction;
  readonly failed: Meaning;
}

const failedWork = (work: string): string =>
  `Users see ${work} as running that does not run, because it failed through a fault of the service.`;

const queues = {
  Deliveries: {
    consumer: eventFunctions.deliver,
    failed: {
      title: "Failed deliveries",
      impact:
        "Webhook receivers have not got some events, because their deliveries failed through a fault of the service.",
    },
  },
  Imports: {
    consumer: eventFunctions.importJob,
    failed: { title: "Failed imports", impact: failedWork("an import") },
  },
  Exports: {
    consumer: eventFunctions.exportJob,
    failed: { title: "Failed exports", impact: failedWork("an export") },
  },
  BulkJobs: {
    consumer: eventFunctions.bulkJob,
    failed: { title: "Failed bulk jobs", impact: failedWork("a bulk job") },
  },
} as const satisfies Record<string, QueueSpec>;

export function createQueue(scope: Construct, id: keyof typeof queues): Queue {
  const { consumer, failed } = queues[id];
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

/** Creates a dead-letter queue with an alarm, which is on while the queue contains a message. */
export function createDeadLetterQueue(scope: Construct, id: string, meaning: Meaning, name = id): Queue {
  const queue = new Queue(scope, id, { ...queueDefaults, retentionPeriod: Duration.days(DEAD_LETTER_DAYS) });
  const reason = "An operator handles the messages of this queue, so they need no further queue.";
  accept(queue, { "AwsSolutions-SQS3": reason, "Serverless-SQSRedrivePolicy": reason });
  const metric = queue.metricApproximateNumberOfMessagesVisible({ period: Duration.minutes(1), statistic: "Maximum" });
  new ExplainedAlarm(queue, "NotEmpty", { metric, threshold: 0, ...meaning });
  nameUrl(queue, `${name}Url`);
  return queue;
}

/** Adds an output with the URL of a queue. `npm run dead-letters` finds the queue by this output. */
function nameUrl(queue: Queue, name: string): void {
  new CfnOutput(queue, "Url", { value: queue.queueUrl }).overrideLogicalId(name);
}
