/** Everything outside of the domain code as one object: made once per warm function, replaceable whole in tests. */
import type { DynamoDBRecord } from "aws-lambda";
import type { JobQueue } from "#shared/aws/job-queue.ts";
import type { Objects } from "#shared/aws/objects.ts";
import type { DeliveryQueue } from "#shared/aws/queue.ts";
import { type Clock, systemClock } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import { type Ids, leaseIds } from "#shared/db/ids.ts";
import type { Write } from "#shared/db/item.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import type { Exchange, Post } from "#shared/outbound/post.ts";
import type { Secrets } from "#shared/secrets/secrets.ts";
import { secretsOn } from "#shared/secrets/secrets.ts";

/** A function opens only the parts that it needs: the others would make its bundle larger. */
export interface AppContext {
  readonly table: Table;
  readonly clock: Clock;
  readonly wait: (ms: number) => Promise<void>;
  readonly ids: Ids;
  readonly secrets: Secrets;
  /**
   * The one transaction of a POST, with the answer that will be given for it: under an idempotency key both are written
   * together, so that a repeated request finds either nothing or the whole answer.
   */
  readonly commit: (writes: readonly Write[], answer: unknown) => Promise<void>;
  readonly objects: Objects;
  readonly jobs: JobQueue;
  /** The delivery queue. */
  readonly queue: DeliveryQueue;
  readonly post: (request: Post) => Promise<Exchange>;
  /** Keeps a stream record that cannot be published, with its data, where an operator finds it. */
  readonly park: (record: DynamoDBRecord, reason: string) => Promise<void>;
  /** Delays and retry gaps pass this many times faster. */
  readonly timeScale: number;
  /** The largest number of functions of the deployment that send at once. */
  readonly senders: number;
}

/** The parts of API functions. */
export type ApiContext = Pick<AppContext, "table" | "ids" | "clock" | "secrets" | "commit">;

/** The parts of functions that work on files. */
export type JobContext = ApiContext & Pick<AppContext, "objects" | "jobs">;

/** The parts of functions that publish and deliver events. */
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

/** Opens nothing before the first request. */
export function apiContext(): ApiContext {
  opened ??= contextOn(openTable(setting("TABLE_NAME")));
  return opened;
}
