/** The queue of imports -> one run of an import. */
import { runImport } from "#shared/imports/job.ts";
import { ImportMessage } from "#shared/imports/message.ts";
import { jobConsumer } from "#shared/jobs/consumer.ts";

export const handler = jobConsumer("import", ImportMessage, runImport);
