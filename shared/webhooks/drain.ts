/**
 * Sends a backlog of deliveries in steps of one page. A lease allows only one step at a time, so that a large backlog occupies only one
 * function. A step sends the message for the next step.
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

/** The lease must outlast the step: `limits.exchangeMs` for its last request, and 8 s for the time before and the writes after it. */
export const LEASE_MS = limits.exchangeMs + 8_000;
/** A message may be this early, because SQS delays messages by whole seconds and the clocks of functions differ. */
const EARLY_MS = 1_000;
/** Upper bound for the lag of the due index. Only an index that stays empty for this time proves that the backlog is empty. */
export const INDEX_LAG_MS = 10_000;
export const PAGE = 50;
/** Maximum number of deliveries per second that a receiver gets from a backlog, besides new ones. */
const PER_SECOND = 10;

/** Returns the time of delivery number `n` of a page. For the number of deliveries in the page, it is the time of the next step. */
export const pacedMs = (startMs: number, n: number): number => startMs + (n * 1_000) / PER_SECOND;

export interface Backlog {
  readonly key: Key;
  /** The attribute with the end of the lease during a step, and with the time of the next step between two steps. */
  readonly lease: "dueAt" | "lookUntil";
  readonly isOpen: Condition;
  readonly message: QueueMessage;
}

export type Step =
  /** `drain` stores `position` before the next step runs at `nextMs`. */
  | { readonly nextMs: number; readonly position?: Change }
  /**
   * The backlog is empty: `drain` applies `end` to the lease's row. If `when` fails, a delivery has joined, and the next step is made now.
   */
  | { readonly end: Change; readonly when?: Condition };

/** Makes one step, unless another function holds the lease. A step may be repeated after a crash, so its writes must be idempotent. */
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
    const ended = { update: key, change: done.end, when: all(isOwn, ...(done.when === undefined ? [] : [done.when])) };
    if ((await updateIf(context, ended)) !== undefined) return;
  }
  const { nextMs, position = {} } = "end" in done ? { nextMs: context.clock.now() } : done;
  const noted = { ...position, set: { ...position.set, [lease]: iso(nextMs) } };
  if ((await updateIf(context, { update: key, change: noted, when: isOwn })) === undefined) return;
  await context.queue.send([{ message, delaySeconds: delaySecondsUntil(nextMs, context.clock.now()) }]);
}

const DueKey = z.object({ pk: z.string(), sk: z.string() });

/**
 * Returns the oldest waiting deliveries in partitions of the due index, at most one page of each. The index lags, so the rows come from the
 * table, and those that no longer wait there are left out. Returns undefined if the index has no entry.
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
