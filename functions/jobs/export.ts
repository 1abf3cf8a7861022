/** Handles the messages of the export queue. A message starts an export job, or continues one that an earlier invocation did not finish. */
import { jobConsumer } from "#shared/jobs/consumer.ts";
import { exportJob } from "#shared/jobs/export/job.ts";

export const handler = jobConsumer(exportJob());
