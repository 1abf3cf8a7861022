/** Handles the messages of the import queue. A message starts import jobs, or continues jobs that an earlier invocation did not finish. */
import { jobConsumer } from "#shared/jobs/consumer.ts";
import { ImportMessage, importJob } from "#shared/jobs/import/job.ts";

export const handler = jobConsumer(importJob, ImportMessage);
