/** The queue of imports -> one run of an import. */

import { jobConsumer } from "#shared/jobs/consumer.ts";
import { runImport } from "#shared/jobs/import/job.ts";
import { ImportMessage } from "#shared/jobs/import/message.ts";

export const handler = jobConsumer("import", ImportMessage, runImport);
