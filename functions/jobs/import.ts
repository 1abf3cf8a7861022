/** Consumes the queue of imports. Each job that a message names gets one run. */
import { jobConsumer } from "#shared/jobs/consumer.ts";
import { ImportMessage, runImport } from "#shared/jobs/import/job.ts";

export const handler = jobConsumer("import", ImportMessage, runImport);
