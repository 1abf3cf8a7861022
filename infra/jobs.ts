/** Work on files: a queue and a function for imports, of whose files the bucket tells, and a queue and a function for exports. */
import { PolicyStatement, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { CfnEventSourceMapping } from "aws-cdk-lib/aws-lambda";
import type { Bucket } from "aws-cdk-lib/aws-s3";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import { Stack } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { accept } from "./finding.ts";
import { allow, createFunction, type Platform } from "./function.ts";
import { guardedQueue } from "./monitoring.ts";
import type { EventFunction } from "./routes/route.ts";
import { eventFunctions } from "./routes/routes.ts";

/** A message comes back long before this where its run fails, and the sweeper sends another where it dies. */
const visibilitySeconds = ({ timeoutSeconds }: EventFunction): number => 6 * timeoutSeconds;

const mend = "Mend the cause, then redrive the queue: each goes on where it was.";

export const createImportQueue = (scope: Construct): Queue =>
  guardedQueue(scope, "Imports", {
    visibilitySeconds: visibilitySeconds(eventFunctions.importJob),
    impact: `Imports failed by our own fault and wait here with their message; their users see them running. ${mend}`,
  });

export const createExportQueue = (scope: Construct): Queue =>
  guardedQueue(scope, "Exports", {
    visibilitySeconds: visibilitySeconds(eventFunctions.exportJob),
    impact: `Exports failed by our own fault and wait here with their message; their users see them running. ${mend}`,
  });

/** Set on the bucket itself: the construct's own way brings a function along. */
export const tellOfUploads = (queue: Queue) => ({
  queueConfigurations: [
    {
      event: "s3:ObjectCreated:*",
      queue: queue.queueArn,
      filter: { s3Key: { rules: [{ name: "prefix", value: "uploads/" }] } },
    },
  ],
});

/**
 * S3 tries the queue when it is told of it, so the policy comes before the bucket and cannot name it; it names the account.
 */
export function letBucketTell(bucket: Bucket, queue: Queue): void {
  const { account } = Stack.of(queue);
  queue.addToResourcePolicy(
    new PolicyStatement({
      actions: ["sqs:SendMessage"],
      principals: [new ServicePrincipal("s3.amazonaws.com")],
      resources: [queue.queueArn],
      conditions: { StringEquals: { "aws:SourceAccount": account } },
    }),
  );
  bucket.node.addDependency(queue);
}

export function createJobs(scope: Construct, platform: Platform): void {
  const home = new Construct(scope, "JobWork");
  createJob(home, platform, eventFunctions.importJob, platform.importQueue);
  createJob(home, platform, eventFunctions.exportJob, platform.exportQueue);
}

function createJob(home: Construct, platform: Platform, spec: EventFunction, { queueArn }: Queue): void {
  const job = createFunction(home, platform, {
    ...spec,
    // A chain ends with its file: each run goes on where the last one ran out of time.
    recursion: "It sends a job that does not end within one invocation to its own queue.",
    statements: [
      allow(
        ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"],
        [queueArn],
      ),
    ],
  });
  const messages = new CfnEventSourceMapping(job, "Queue", {
    functionName: job.functionName,
    eventSourceArn: queueArn,
    batchSize: 1,
    functionResponseTypes: ["ReportBatchItemFailures"],
    scalingConfig: { maximumConcurrency: platform.capacity.jobs },
  });
  accept(messages, {
    "Serverless-LambdaEventSourceMappingDestination": "A queue's failed messages go to its own dead letters, whole.",
  });
}
