/**
 * The services that domain code uses, as one object: the table, the clock, queues and so on. Each instance of a Lambda function creates the
 * object once. Tests replace the whole object.
 */
import type { DynamoDBRecord } from "aws-lambda";
import type { Objects } from "#shared/aws/s3.ts";
import type { DeliveryQueue, JobQueue } from "#shared/aws/sqs.ts";
import { type Clock, systemClock } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import type { Write } from "#shared/db/expression.ts";
import { type Ids, leaseIds } from "#shared/db/ids.ts";
import { openReads, type Reads } from "#shared/db/reads.ts";
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
   * Commits the writes of a request in one transaction. If the request has an idempotency key, the same transaction stores `answer` with
   * the key. A repeated request therefore finds either no effect or the complete answer. `written` is the record that the writes create or
   * change. If a device has sent the request as an operation (offline sync), the operation's receipt contains the id and version of
   * `written`. If `writes` is empty, only `answer` or the receipt is stored.
   */
  readonly commit: (writes: readonly Write[], answer: unknown, written?: Written) => Promise<void>;
  /** Identifies the request: all repetitions of the request have the same value. Undefined if the request has no idempotency key. */
  readonly requestKey?: string | undefined;
  readonly objects: Objects;
  readonly jobs: JobQueue;
  readonly queue: DeliveryQueue;
  readonly post: (request: Post) => Promise<Exchange>;
  /**
   * Sends a stream record from which no event can be made (a poison record) to the queue of poison records. The message contains the
   * record's data, so that an operator can publish the event after a repair.
   */
  readonly savePoisonRecord: (record: DynamoDBRecord, reason: string) => Promise<void>;
  /** Delivery delays and retry gaps are divided by this factor. It is 1 in a deployment, and greater than 1 in tests. */
  readonly timeScale: number;
  /** Maximum number of delivery functions that run concurrently in the deployment. */
  readonly senders: number;
}

/** The record that a transaction has written. The version grows with each write of the record. */
export interface Written {
  readonly id: number;
  readonly version: number;
}

export type ApiContext = Pick<AppContext, "table" | "ids" | "clock" | "secrets" | "commit" | "requestKey">;

/** The services of endpoints that only read. */
export interface ReadContext extends Pick<AppContext, "clock"> {
  readonly table: Reads;
}

export type JobContext = ApiContext & Pick<AppContext, "objects" | "jobs">;

export interface EventContext
  extends Pick<
    AppContext,
    "table" | "clock" | "wait" | "queue" | "post" | "savePoisonRecord" | "timeScale" | "senders"
  > {
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
  commit: (writes) => transactAny(table, writes),
});

/** Sends the writes to the table as one transaction. Does nothing if there are no writes, because DynamoDB rejects an empty transaction. */
export const transactAny = async (table: Pick<Table, "transact">, writes: readonly Write[]): Promise<void> => {
  if (writes.length > 0) await table.transact(writes);
};

let opened: ApiContext | undefined;

/** Returns the context. It is created at the first call and opens no connection, so that importing the module costs nothing. */
export function apiContext(): ApiContext {
  opened ??= contextOn(openTable(setting("TABLE_NAME")));
  return opened;
}

let openedForReads: ReadContext | undefined;

/** Returns a context that can only read. Endpoints that only read use it, so that their bundles contain no code for writes. */
export function readContext(): ReadContext {
  openedForReads ??= { table: openReads(setting("TABLE_NAME")), clock: systemClock };
  return openedForReads;
}
