/**
 * The services that domain code uses, combined in one object. A function instance makes the object only once; tests replace the whole
 * object.
 */
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

/** All services. Each function opens only the services that it needs, because each service makes the function's bundle larger. */
export interface AppContext {
  readonly table: Table;
  readonly clock: Clock;
  readonly wait: (ms: number) => Promise<void>;
  readonly ids: Ids;
  readonly secrets: Secrets;
  /**
   * Commits the single transaction of a POST together with its answer. If the request has an idempotency key, a repeated request therefore
   * finds either nothing or the complete answer.
   */
  readonly commit: (writes: readonly Write[], answer: unknown) => Promise<void>;
  readonly objects: Objects;
  readonly jobs: JobQueue;
  /** The delivery queue. */
  readonly queue: DeliveryQueue;
  readonly post: (request: Post) => Promise<Exchange>;
  /**
   * Puts a stream record into the queue of poison records if the record cannot be published. The message contains the record's data, so
   * that an operator can repair the fault.
   */
  readonly park: (record: DynamoDBRecord, reason: string) => Promise<void>;
  /** The factor by which delays and retry gaps are shortened. */
  readonly timeScale: number;
  /** The largest number of delivery functions of the deployment that run concurrently. */
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
