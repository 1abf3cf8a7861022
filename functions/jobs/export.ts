/** The queue of exports -> one run of an export. */

import { jobConsumer } from "#shared/jobs/consumer.ts";
import { runExport } from "#shared/jobs/export/job.ts";
import { ExportMessage } from "#shared/jobs/export/message.ts";

export const handler = jobConsumer("export", ExportMessage, runExport);
