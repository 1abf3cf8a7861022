/** Handles the messages of the queue of bulk jobs. A message starts a job, or continues a job that an earlier invocation did not finish. */
import { bulkJob } from "#shared/jobs/bulk/run.ts";
import { jobConsumer } from "#shared/jobs/consumer.ts";

export const handler = jobConsumer(bulkJob());
