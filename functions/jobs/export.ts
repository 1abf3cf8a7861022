/** The queue of exports -> one run of an export. */
import { runExport } from "#shared/exports/job.ts";
import { ExportMessage } from "#shared/exports/message.ts";
import { jobConsumer } from "#shared/jobs/consumer.ts";

export const handler = jobConsumer("export", ExportMessage, runExport);
