/**
 * The drain engine. It empties a paused backlog, a throttled backlog or the range of a replay in steps, and each step is started by a queue
 * message. A lease allows only one step at a time, so even a very large backlog uses only one delivery function. A step settles a page of
 * deliveries, stores its position and sends the message of the next step. If that message is lost, the sweeper finds the backlog's row in
 * the due index and sends the message again.
 */
import * as z from "zod/mini";
import { delaySecondsUntil } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import { all, any, atMost, type Change, type Condition, equals, missing } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { limits } from "#shared/limits.ts";
import { StoredDelivery } from "#shared/webhooks/delivery.ts";
import type { QueueMessage } from "#shared/webhooks/messages.ts";
import { updateIf } from "#shared/webhooks/settle.ts";

/** The duration of a lease. It is longer than an exchange and its record can take, so the holder of an expired lease counts as dead. */
export const LEASE_MS = limits.exchangeMs + 8_000;
/** A step may start this much before its planned time, because queue delays are whole seconds and the clocks of functions differ. */
const EARLY_MS = 1_000;
/** The upper bound of the due index's lag behind the table. An empty page proves nothing before this time has passed. */
export const INDEX_LAG_MS = 10_000;
/** The number of deliveries in one page. */
export const PAGE = 50;
/** A receiver gets at most this many missed deliveries per second, in addition to new deliveries. */
const PER_SECOND = 10;

/**
 * The due time of delivery number `n` of a page, at the limited rate. For the length of the page, the function returns the time of the next
 * step.
 */
export const pacedMs = (startMs: number, n: number): number => startMs + (n * 1_000) / PER_SECOND;

export interface Backlog {
  /** The row that holds the lease. */
  readonly key: Key;
  /** The attribute that holds the lease: its end while a step runs, otherwise the time of the next step. */
  readonly lease: "dueAt" | "lookUntil";
  /** Holds as long as the backlog must be drained. */
  readonly isOpen: Condition;
  /** The message that starts the next step. */
  readonly message: QueueMessage;
}

export type Step =
  /** The drain continues at this time. `position` is stored first, so that the next step finds it. */
  | { readonly nextMs: number; readonly position?: Change }
  /** The backlog is empty, and `end` is stored. If the condition `when` no longer holds, the next step follows at once. */
  | { readonly end: Change; readonly when: Condition };

/**
 * Runs one step. A message that finds the lease taken changes nothing, because the holder of the lease sends the next message. `step`
 * receives the row as it was claimed. It can run again after a crash, so each of its writes must be idempotent.
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
    // Free the lease, because the failed message comes back within seconds and needs it.
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
 * The oldest waiting deliveries in these partitions of the due index, one page for each partition. Only the keys are read from the index,
 * because it lags behind the rows. Returns undefined if the index is empty.
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
