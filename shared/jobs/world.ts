/** The outside world of work on files. */
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { setting } from "#shared/config.ts";
import { openTable } from "#shared/db/table.ts";
import { type JobQueue, openJobQueues } from "#shared/jobs/queue.ts";
import { type Objects, openObjects } from "#shared/objects.ts";
import { type World, worldOn } from "#shared/world.ts";

export interface JobWorld extends World {
  readonly objects: Objects;
  readonly jobs: JobQueue;
}

/** Nobody waits for an answer: a throttled write is sent again for up to 15 seconds. */
const ATTEMPTS = 5;

let made: JobWorld | undefined;

/** Nothing is read or connected before the first message. */
export function jobWorld(): JobWorld {
  made ??= {
    ...worldOn(openTable(setting("TABLE_NAME"), dynamoClient({ attempts: ATTEMPTS }))),
    objects: openObjects(),
    jobs: openJobQueues(),
  };
  return made;
}
