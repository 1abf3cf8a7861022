/** The messages of the queue of exports: whoever begins one says that there is something to do, or a run that hands over, or the sweeper. */
import { oneJob } from "#shared/jobs/queue.ts";

export const ExportMessage = oneJob("export");
