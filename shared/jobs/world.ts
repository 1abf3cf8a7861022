/** The outside world of work on files. */
import { type JobQueue, openJobQueues } from "#shared/jobs/queue.ts";
import { type Objects, openObjects } from "#shared/objects.ts";
import { type World, world } from "#shared/world.ts";

export interface JobWorld extends World {
  readonly objects: Objects;
  readonly jobs: JobQueue;
}

let made: JobWorld | undefined;

/** Nothing is read or connected before the first message. */
export function jobWorld(): JobWorld {
  made ??= { ...world(), objects: openObjects(), jobs: openJobQueues() };
  return made;
}
