/** Opens the parts of the context that work on files needs. */
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { openJobQueues } from "#shared/aws/job-queue.ts";
import { openObjects } from "#shared/aws/objects.ts";
import { setting } from "#shared/config.ts";
import { contextOn, type JobContext } from "#shared/context.ts";
import { openTable } from "#shared/db/table.ts";

/** Nobody waits for an answer: a throttled write is sent again for up to 15 seconds. */
const ATTEMPTS = 5;

let made: JobContext | undefined;

/** Nothing is read or connected before the first message. */
export function jobContext(): JobContext {
  made ??= {
    ...contextOn(openTable(setting("TABLE_NAME"), dynamoClient({ attempts: ATTEMPTS }))),
    objects: openObjects(),
    jobs: openJobQueues(),
  };
  return made;
}
