/** Handles the messages of the queue of bulk jobs. A message starts or continues a job. */
import { bulkJob } from "#shared/jobs/bulk/run.ts";
import { jobConsumer } from "#shared/jobs/consumer.ts";

export const handler = jobConsumer(bulkJob());
