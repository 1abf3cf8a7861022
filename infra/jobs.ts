/** Work on files: the bucket tells a queue of what is uploaded, and one function imports and exports, run after run. */
import { PolicyStatement, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { CfnEventSourceMapping } from "aws-cdk-lib/aws-lambda";
import type { Bucket } from "aws-cdk-lib/aws-s3";
import type { Queue, QueuePolicy } from "aws-cdk-lib/aws-sqs";
import { Stack } from "aws-cdk-lib/core";
import { Construct } from "constructs";
import { accept } from "./finding.ts";
import { allow, createFunction, type Platform } from "./function.ts";
import { guardedQueue } from "./monitoring.ts";
import { eventFunctions } from "./routes.ts";

/** Imports and exports at work at once: each writes or reads as fast as the table lets it, and leaves concurrency to the API. */
const MAX_JOBS = 10;

/** A run lets its message come back long before this, when it begins and as long as it works. */
export const createJobQueue = (scope: Construct): Queue =>
  guardedQueue(scope, "Jobs", {
    visibilitySeconds: 6 * eventFunctions.job.timeoutSeconds,
    impact:
      "Imports or exports failed by our own fault and wait here with their message; their users see them running. " +
      "Mend the cause, then redrive the queue: each goes on where it was.",
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
export function letBucketTell(bucket: Bucket, queue: Queue, policy: QueuePolicy): void {
  const { account } = Stack.of(queue);
  policy.document.addStatements(
    new PolicyStatement({
      actions: ["sqs:SendMessage"],
      principals: [new ServicePrincipal("s3.amazonaws.com")],
      resources: [queue.queueArn],
      conditions: { StringEquals: { "aws:SourceAccount": account } },
    }),
  );
  bucket.node.addDependency(policy);
}

export function createJobs(scope: Construct, platform: Platform): void {
  const home = new Construct(scope, "JobWork");
  const { queueArn } = platform.jobQueue;
  const job = createFunction(home, platform, {
    ...eventFunctions.job,
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
    scalingConfig: { maximumConcurrency: MAX_JOBS },
  });
  accept(messages, {
    "Serverless-LambdaEventSourceMappingDestination": "A queue's failed messages go to its own dead letters, whole.",
  });
}
