/** Handles the messages of the export queue. A message starts or continues an export job. */
import { jobConsumer } from "#shared/jobs/consumer.ts";
import { exportJob } from "#shared/jobs/export/job.ts";

export const handler = jobConsumer(exportJob());
