/**
 * Sends a backlog of deliveries in steps. A queue message starts each step. A lease allows only one step at a time, so that a large backlog
 * occupies only one function. A step handles one page of deliveries, stores its position, and sends the message for the next step. If this
 * message is lost, the sweeper (a function that runs every minute) sends another one.
 */
import * as z from "zod/mini";
import { delaySecondsUntil } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import { all, any, atMost, type Change, type Condition, equals, missing } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import * as limits from "#shared/limits.ts";
import { StoredDelivery } from "#shared/webhooks/delivery.ts";
import type { QueueMessage } from "#shared/webhooks/messages.ts";
import { updateIf } from "#shared/webhooks/settle.ts";

/**
 * Milliseconds of a step's lease. The lease must outlast the step, so that a function whose lease has expired has ended its work. The last
 * request of a step takes at most `limits.exchangeMs`. 8 s remain for the time before this request and for the writes after it.
 */
export const LEASE_MS = limits.exchangeMs + 8_000;
/**
 * A message may start its step up to this many milliseconds before the step's planned time, because SQS delays messages by whole seconds
 * and the clocks of functions differ.
 */
const EARLY_MS = 1_000;
/**
 * Upper bound for the lag of the due index (waiting deliveries by due time) behind the table. An empty index proves that the backlog is
 * empty only if it stays empty for this time.
 */
export const INDEX_LAG_MS = 10_000;
/** Maximum number of deliveries that a step handles. */
export const PAGE = 50;
/** Maximum number of deliveries per second that a receiver gets from a backlog. New deliveries are not included. */
const PER_SECOND = 10;

/**
 * Returns the time at which delivery number `n` of a page is sent, at the rate `PER_SECOND`. If `n` is the number of deliveries in the
 * page, the result is the time of the next step.
 */
export const pacedMs = (startMs: number, n: number): number => startMs + (n * 1_000) / PER_SECOND;

export interface Backlog {
  readonly key: Key;
  /** The attribute with the end of the lease while a step is running. Between two steps, it contains the time of the next step. */
  readonly lease: "dueAt" | "lookUntil";
  readonly isOpen: Condition;
  readonly message: QueueMessage;
}

export type Step =
  /** The next step runs at `nextMs`. `drain` first stores `position`, so that the next step can continue there. */
  | { readonly nextMs: number; readonly position?: Change }
  /**
   * The backlog is empty. `drain` then applies `end` to the row that holds the lease. If the condition `when` fails, a delivery has joined
   * the backlog meanwhile, and the next step runs at once.
   */
  | { readonly end: Change; readonly when: Condition };

/**
 * Runs one step of sending a backlog. Does nothing while another function holds the lease, because that function sends the next message. A
 * step may be repeated after a crash, so the writes of `step` must be idempotent.
 */
export async function drain(
  context: EventContext,
  { key, lease, isOpen, message }: Backlog,
  step: (row: Item, startMs: number) => Promise<Step>,
): Promise<void> {
  const startMs = context.clock.now();
  const leaseEnd = iso(startMs + LEASE_MS);
  const isFree = any(missing(lease), atMost(lease, iso(startMs + EARLY_MS)));
  const claim = { update: key, change: { set: { [lease]: leaseEnd } }, when: all(isOpen, isFree) };
  const row = await updateIf(context, claim);
  if (row === undefined) return;
  const isOwn = all(isOpen, equals(lease, leaseEnd));
  let done: Step;
  try {
    done = await step(row, startMs);
  } catch (error) {
    // Free the lease: the queue delivers the failed message again within seconds, and its step needs the lease.
    const free = { update: key, change: { set: { [lease]: iso(startMs) } }, when: isOwn };
    await updateIf(context, free).catch(() => undefined);
    throw error;
  }
  if ("end" in done) {
    const ended = { update: key, change: done.end, when: all(isOwn, done.when) };
    if ((await updateIf(context, ended)) !== undefined) return;
  }
  const { nextMs, position = {} } = "end" in done ? { nextMs: context.clock.now() } : done;
  const noted = { ...position, set: { ...position.set, [lease]: iso(nextMs) } };
  if ((await updateIf(context, { update: key, change: noted, when: isOwn })) === undefined) return;
  await context.queue.send([{ message, delaySeconds: delaySecondsUntil(nextMs, context.clock.now()) }]);
}

const DueKey = z.object({ pk: z.string(), sk: z.string() });

/**
 * Returns the oldest waiting deliveries in the partitions `shards` of the due index (rows by due time), at most one page of each partition.
 * The index may lag behind the table. Therefore only the keys come from the index. The rows come from the table, and those that no longer
 * wait in one of these partitions are left out. Returns undefined if the index has no entry.
 */
export async function oldestIn(table: Table, shards: readonly string[]): Promise<StoredDelivery[] | undefined> {
  const found: Key[] = [];
  for (const pk of shards) {
    for await (const item of table.query({ pk, index: "due", limit: PAGE })) found.push(DueKey.parse(item));
  }
  if (found.length === 0) return undefined;
  const rows = (await table.batchGet(found)).map((row) => StoredDelivery.parse(row));
  return rows
    .filter(({ state, dueShard }) => state === "waiting" && dueShard !== undefined && shards.includes(dueShard))
    .sort((a, b) => (a.dueAt < b.dueAt ? -1 : a.dueAt > b.dueAt ? 1 : a.id < b.id ? -1 : 1));
}
