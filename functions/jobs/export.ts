/** Consumes the queue of exports: one run of an export for each message. */
import { jobConsumer } from "#shared/jobs/consumer.ts";
import { ExportMessage, runExport } from "#shared/jobs/export/job.ts";

export const handler = jobConsumer("export", ExportMessage, runExport);
