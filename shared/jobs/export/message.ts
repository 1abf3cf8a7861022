/** The messages of the queue of exports: whoever begins one says that there is something to do, or a run that hands over, or the sweeper. */
import { oneJob } from "#shared/aws/job-queue.ts";

export const ExportMessage = oneJob("export");
