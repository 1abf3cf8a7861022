/** Runs as a separate process. It calls the import function with S3's message about one upload, and prints the peak of its memory. */
import type { Context } from "aws-lambda";
import { handler } from "../../functions/jobs/import.ts";

const [key = ""] = process.argv.slice(2);
const RUN_MS = 900_000;
const ends = Date.now() + RUN_MS;

// The process samples its memory, because the operating system's maximum also includes the memory of the parent process at the fork.
let peakBytes = 0;
const watch = setInterval(() => {
  peakBytes = Math.max(peakBytes, process.memoryUsage.rss());
}, 5);

const context: Context = {
  callbackWaitsForEmptyEventLoop: false,
  functionName: "jobs-import",
  functionVersion: "1",
  invokedFunctionArn: "arn:aws:lambda:us-east-1:000000000000:function:jobs-import",
  memoryLimitInMB: "1024",
  awsRequestId: "1",
  logGroupName: "",
  logStreamName: "",
  getRemainingTimeInMillis: () => ends - Date.now(),
  done: () => undefined,
  fail: () => undefined,
  succeed: () => undefined,
};
const record = {
  messageId: "1",
  receiptHandle: "1",
  body: JSON.stringify({ Records: [{ eventSource: "aws:s3", s3: { object: { key } } }] }),
  attributes: {
    ApproximateReceiveCount: "1",
    SentTimestamp: "0",
    SenderId: "S3",
    ApproximateFirstReceiveTimestamp: "0",
  },
  messageAttributes: {},
  md5OfBody: "",
  eventSource: "aws:sqs",
  eventSourceARN: "arn:aws:sqs:us-east-1:000000000000:imports",
  awsRegion: "us-east-1",
};

const { batchItemFailures } = await handler({ Records: [record] }, context);
clearInterval(watch);
process.stdout.write(JSON.stringify({ failed: batchItemFailures.length, peakBytes }));
