/** The object with the services that domain code uses. Each instance of a function creates it once, and tests replace it. */
import type { DynamoDBRecord } from "aws-lambda";
import type { Objects } from "#shared/aws/s3.ts";
import type { DeliveryQueue, JobQueue } from "#shared/aws/sqs.ts";
import { type Clock, systemClock } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import type { Write } from "#shared/db/expression.ts";
import { type Ids, leaseIds } from "#shared/db/ids.ts";
import type { Plan } from "#shared/db/plan.ts";
import { openReads, type Reads } from "#shared/db/reads.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { oncePerInstance } from "#shared/instance.ts";
import type { Exchange, Post } from "#shared/outbound/post.ts";
import { type Secrets, secretsOn } from "#shared/secrets/secrets.ts";

/** Each function opens only the services that it needs, because each service makes the bundle of the function larger. */
export interface AppContext {
  readonly table: Table;
  readonly clock: Clock;
  readonly wait: (ms: number) => Promise<void>;
  readonly ids: Ids;
  readonly secrets: Secrets;
  /** Identifies the request: all repetitions of the request have the same value. Undefined if the request has no idempotency key. */
  readonly requestKey?: string | undefined;
  readonly objects: Objects;
  readonly jobs: JobQueue;
  readonly queue: DeliveryQueue;
  readonly post: (request: Post) => Promise<Exchange>;
  /** Queues a poison record with its data, so that an operator can publish the event after a repair. */
  readonly savePoisonRecord: (record: DynamoDBRecord, reason: string) => Promise<void>;
  readonly timeScale: number;
  readonly senders: number;
}

export type ApiContext = Pick<AppContext, "table" | "ids" | "clock" | "secrets" | "requestKey">;

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
): ApiContext => ({ table, ids: leaseIds(table), clock, secrets });

/** Does nothing if there are no writes, because DynamoDB rejects an empty transaction. */
export const transactAny = async (table: Pick<Table, "transact">, writes: readonly Write[]): Promise<void> => {
  if (writes.length > 0) await table.transact(writes);
};

/** Commits a plan, but does not store its answer for a repeated request. */
export const commitTo =
  (table: Pick<Table, "transact">) =>
  ({ writes }: Pick<Plan<unknown>, "writes">): Promise<void> =>
    transactAny(table, writes);

export const apiContext = /* @__PURE__ */ oncePerInstance(
  (): ApiContext => contextOn(openTable(setting("TABLE_NAME"))),
);

/** For endpoints that only read. Their bundles then contain no code for writes. */
export const readContext = /* @__PURE__ */ oncePerInstance(
  (): ReadContext => ({ table: openReads(setting("TABLE_NAME")), clock: systemClock }),
);
