/** The services that domain code uses, as one object. A warm function makes it once; tests replace all of it. */
import type { DynamoDBRecord } from "aws-lambda";
import type { Objects } from "#shared/aws/s3.ts";
import type { DeliveryQueue, JobQueue } from "#shared/aws/sqs.ts";
import { type Clock, systemClock } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import type { Write } from "#shared/db/expression.ts";
import { type Ids, leaseIds } from "#shared/db/ids.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import type { Exchange, Post } from "#shared/outbound/post.ts";
import type { Secrets } from "#shared/secrets/secrets.ts";
import { secretsOn } from "#shared/secrets/secrets.ts";

/** A function opens only the services that it needs, since each of them makes its bundle larger. */
export interface AppContext {
  readonly table: Table;
  readonly clock: Clock;
  readonly wait: (ms: number) => Promise<void>;
  readonly ids: Ids;
  readonly secrets: Secrets;
  /**
   * Commits the one transaction of a POST with its answer. Under an idempotency key it writes both together, so that a repeated
   * request finds either nothing or the complete answer.
   */
  readonly commit: (writes: readonly Write[], answer: unknown) => Promise<void>;
  readonly objects: Objects;
  readonly jobs: JobQueue;
  /** The delivery queue. */
  readonly queue: DeliveryQueue;
  readonly post: (request: Post) => Promise<Exchange>;
  /** Sends a stream record that cannot be published, with its data, to the queue of poison records for an operator. */
  readonly park: (record: DynamoDBRecord, reason: string) => Promise<void>;
  /** Divides delays and retry gaps. */
  readonly timeScale: number;
  /** The largest number of delivery functions of the deployment at once. */
  readonly senders: number;
}

/** The services of API functions. */
export type ApiContext = Pick<AppContext, "table" | "ids" | "clock" | "secrets" | "commit">;

/** The services of functions that import and export files. */
export type JobContext = ApiContext & Pick<AppContext, "objects" | "jobs">;

/** The services of functions that publish and deliver events. */
export interface EventContext
  extends Pick<AppContext, "table" | "clock" | "wait" | "queue" | "post" | "park" | "timeScale" | "senders"> {
  readonly secrets: Pick<Secrets, "open">;
}

export const contextOn = (
  table: Table,
  clock: Clock = systemClock,
  secrets: Secrets = secretsOn(table),
): ApiContext => ({
  table,
  ids: leaseIds(table),
  clock,
  secrets,
  commit: (writes) => table.transact(writes),
});

let opened: ApiContext | undefined;

/** Opens no connection before the first request. */
export function apiContext(): ApiContext {
  opened ??= contextOn(openTable(setting("TABLE_NAME")));
  return opened;
}
