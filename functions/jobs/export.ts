/** Consumes the queue of exports. Each message starts one run of an export. */
import { jobConsumer } from "#shared/jobs/consumer.ts";
import { ExportMessage, runExport } from "#shared/jobs/export/job.ts";

export const handler = jobConsumer("export", ExportMessage, runExport);
