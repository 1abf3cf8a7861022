/** Consumes the queue of imports: one run of an import for each job that a message names. */
import { jobConsumer } from "#shared/jobs/consumer.ts";
import { ImportMessage, runImport } from "#shared/jobs/import/job.ts";

export const handler = jobConsumer("import", ImportMessage, runImport);
