/** Handles the messages of the import queue. A message starts or continues import jobs. */
import { jobConsumer } from "#shared/jobs/consumer.ts";
import { ImportMessage, importJob } from "#shared/jobs/import/job.ts";

export const handler = jobConsumer(importJob, ImportMessage);
