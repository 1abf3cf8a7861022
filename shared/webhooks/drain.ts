/**
 * Drains a backlog of deliveries in steps, each started by a queue message. A lease permits only one step at a time, so a large backlog
 * occupies only one function. A step handles a page of deliveries, stores its position, and sends the message of the next step. If that
 * message is lost, the sweeper sends it again.
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

/** How long a step holds its lease. A request and its record take less time, so a function whose lease has expired no longer works. */
export const LEASE_MS = limits.exchangeMs + 8_000;
/**
 * A message may start its step this much before the planned time, because queue delays are whole seconds and the clocks of functions
 * differ.
 */
const EARLY_MS = 1_000;
/**
 * An upper bound for the lag of the due index (deliveries by due time) behind the table. An empty index proves that the backlog is empty
 * only after this time.
 */
export const INDEX_LAG_MS = 10_000;
/** A step handles at most this many deliveries. */
export const PAGE = 50;
/** A receiver gets at most this many deliveries from a backlog per second, in addition to new deliveries. */
const PER_SECOND = 10;

/**
 * Returns when delivery number `n` of a page is sent, at the limited rate. With the length of the page as `n`, returns the time of the next
 * step.
 */
export const pacedMs = (startMs: number, n: number): number => startMs + (n * 1_000) / PER_SECOND;

export interface Backlog {
  readonly key: Key;
  /** The attribute that holds the end of the lease while a step runs, and otherwise the time of the next step. */
  readonly lease: "dueAt" | "lookUntil";
  readonly isOpen: Condition;
  readonly message: QueueMessage;
}

export type Step =
  /** The next step follows at `nextMs`. `position` is stored before, so that the next step can continue there. */
  | { readonly nextMs: number; readonly position?: Change }
  /**
   * The backlog is empty, so `end` is stored. If the condition `when` fails, a delivery has joined meanwhile and the next step follows at
   * once.
   */
  | { readonly end: Change; readonly when: Condition };

/**
 * Runs one step of a drain. Does nothing while another function holds the lease, because that function sends the next message. `step` may
 * run again after a crash, so its writes must be idempotent.
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
    // Free the lease, because the failed message returns within seconds and needs it.
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
 * Returns the oldest waiting deliveries of these partitions of the due index, at most one page of each. Only the keys come from the index,
 * because the index lags behind the rows. Returns undefined if the index has no entry.
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
