/** The job queue -> one run of an import or export. */
import { jobConsumer } from "#shared/jobs/consumer.ts";
import { jobWorld } from "#shared/jobs/world.ts";

export const handler = jobConsumer(jobWorld);
