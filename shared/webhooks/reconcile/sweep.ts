/**
 * The sweeper runs every minute. It reads the due index (an index of rows by due time), and sends a new queue message for each due
 * delivery, backlog, replay and fan-out whose message was lost.
 */
import * as z from "zod/mini";
import { allEnded } from "#shared/all-ended.ts";
import { delaySecondsUntil, messageGroup, type Queued } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { all, any, below, equals, missing } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { fanOutKeys, limiterKeys, replayKeys } from "#shared/db/webhook-keys.ts";
import { errorFields, log } from "#shared/log.ts";
import { StoredDelivery } from "#shared/webhooks/delivery.ts";
import {
  fanOutMessage,
  messageFor,
  pausedDrainMessage,
  type QueueMessage,
  replayMessage,
  throttledDrainMessage,
} from "#shared/webhooks/messages.ts";
import { companyOf, countOverdue, DueEntry, isDelivery, reportLag } from "#shared/webhooks/reconcile/lag.ts";
import { updateIf } from "#shared/webhooks/settle.ts";

/**
 * What the sweeper assumes about the queue. An operator chooses `messages-lost` if the queue was purged or is new. The sweeper then queues
 * waiting deliveries even if they are not due, those with the earliest due time first. If it has no time for all of them, its next
 * invocations, which follow every minute, queue each of the other deliveries when it is due.
 */
export const SweepInput = z.object({ assume: z.enum(["messages-kept", "messages-lost"]) });
export type SweepInput = z.infer<typeof SweepInput>;

/** If a delivery has been due for less than this time, its queue message probably still exists. */
const GRACE_MS = 30_000;
/**
 * A delivery is queued again at most once within this time. Otherwise each run, every minute, would add another message for each delivery
 * that is still waiting.
 */
const SWEEP_AGAIN_MS = 10 * 60_000;
/** Number of index entries that are handled together. Their rows are updated concurrently, and their messages are queued with one call. */
const TOGETHER = 10;
/**
 * Maximum number of deliveries that one run handles, except with `messages-lost`. An entry takes two milliseconds of processor time. 10 000
 * entries take 20 s, less than half of the time-out of the function, 50 s.
 */
export const CAPACITY = 10_000;
/**
 * The function times out after 50 s. A run handles no further entry after its first `WORK_MS`, and counts no further backlog after its
 * first `METRICS_MS`.
 */
export const WORK_MS = 35_000;
const METRICS_MS = 42_000;

/**
 * Returns a company's stride. With a stride of 3, a run handles every third due delivery of the company. The next run handles other
 * deliveries.
 */
export type Strides = (companyId: number) => number;

/**
 * Divides the capacity of one run fairly between companies. `counts` contains the number of due deliveries of each company. If a company
 * has fewer than an equal share, all its deliveries are handled, and the other companies divide the rest.
 */
export function fairStrides(counts: ReadonlyMap<number, number>, capacity: number): Strides {
  const equal = capacity / Math.max(1, counts.size);
  let [left, large] = [0, 0];
  for (const count of counts.values()) {
    if (count > equal) large++;
    else left += equal - count;
  }
  const share = Math.max(1, equal + left / Math.max(1, large));
  return (companyId) => Math.max(1, Math.ceil((counts.get(companyId) ?? 0) / share));
}

/**
 * Sends a new queue message for each one that was lost, and reports how late deliveries are. Returns the number of queued messages. An
 * error does not end the run at once: the run throws its first error at its end.
 */
export async function sweep(context: EventContext, { assume }: SweepInput): Promise<number> {
  const begun = context.clock.now();
  const isAll = assume === "messages-lost";
  const overdue = await countOverdue(context.table, iso(begun - GRACE_MS));
  const entries = isAll ? (pk: string) => context.table.query({ pk, index: "due" }) : overdue.again;
  const strides: Strides = isAll ? () => 1 : fairStrides(overdue.deliveries.byCompany, CAPACITY);
  const run: Run = { context, assume, queued: 0, fannedOut: new Set(), firstError: undefined };
  const work = keys.dueShards().map((shard) => sweepShard(run, entries(shard), strides, begun + WORK_MS));
  const ends = await Promise.allSettled(work);
  // The lag is reported last and errors of the report are ignored, because replacing lost messages is more important.
  await reportLag(context, overdue, begun + METRICS_MS).catch((error: unknown) =>
    log.error("lag not reported", errorFields(error)),
  );
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  // A row that cannot be read does not stop the other entries. The run must still fail at its end, so that the alarm for errors goes off.
  if (run.firstError !== undefined) throw run.firstError;
  return run.queued;
}

interface Run {
  readonly context: EventContext;
  readonly assume: SweepInput["assume"];
  queued: number;
  /** The message groups of fan-outs (events with many matches) that have already got a message in this run. */
  readonly fannedOut: Set<string>;
  /** The first error of this run, or undefined. At the end of the run, this error is thrown. */
  firstError: unknown;
}

/**
 * Handles the entries of a partition in small groups while the partition is being read. The strides limit only how many deliveries are
 * handled. Entries of other kinds are few, so all of them are handled.
 */
async function sweepShard(
  run: Run,
  items: AsyncIterable<unknown> | Iterable<unknown>,
  strides: Strides,
  endMs: number,
): Promise<void> {
  const { clock } = run.context;
  const minute = Math.floor(clock.now() / 60_000);
  const seen = new Map<number, number>();
  let taken: DueEntry[] = [];
  for await (const item of items) {
    if (clock.now() > endMs) break;
    const entry = DueEntry.parse(item);
    if (isDelivery(entry)) {
      const companyId = companyOf(entry);
      const position = seen.get(companyId) ?? 0;
      seen.set(companyId, position + 1);
      if ((position + minute) % strides(companyId) !== 0) continue;
    }
    if (taken.push(entry) < TOGETHER) continue;
    await queueSome(run, taken);
    taken = [];
  }
  await queueSome(run, taken);
}

async function queueSome(run: Run, entries: readonly DueEntry[]): Promise<void> {
  const messages: Queued[] = [];
  const guarded = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      run.firstError ??= error;
    }
  };
  await allEnded(
    entries.map((entry) =>
      guarded(async () => {
        const queued = await lostMessage(run, entry);
        if (queued !== undefined) messages.push(queued);
      }),
    ),
  );
  if (messages.length === 0) return;
  await guarded(async () => {
    await run.context.queue.send(messages);
    run.queued += messages.length;
  });
}

/**
 * Returns a new message for the entry's delivery, backlog, replay or fan-out, or undefined if it needs none. An entry of the index may be
 * out of date, so the state of a delivery comes from its row in the table.
 */
async function lostMessage({ context, assume, fannedOut }: Run, key: DueEntry): Promise<Queued | undefined> {
  const step = stepMessage(key);
  if (step !== undefined && "fanOut" in step) {
    // One message is enough for all fan-outs of a company's lane. A company has two lanes: one for ordinary events and one for the events
    // of its bulk jobs.
    const lane = messageGroup(step);
    if (fannedOut.has(lane)) return undefined;
    fannedOut.add(lane);
  }
  if (step !== undefined) return { message: step, delaySeconds: 0 };
  const now = context.clock.now();
  const isDue = any(missing("sweptAt"), below("sweptAt", iso(now - SWEEP_AGAIN_MS)));
  const isWaiting = equals("state", "waiting");
  const row = await updateIf(context, {
    update: { pk: key.pk, sk: key.sk },
    change: { set: { sweptAt: iso(now) } },
    when: assume === "messages-lost" ? isWaiting : all(isWaiting, isDue),
  });
  if (row === undefined) return undefined;
  const delivery = StoredDelivery.parse(row);
  return { message: messageFor(delivery), delaySeconds: delaySecondsUntil(Date.parse(delivery.dueAt), now) };
}

/**
 * Returns the message that starts the next step of a backlog, replay or fan-out. Returns undefined if the entry belongs to a delivery. A
 * superfluous message does no harm, because a lease allows only one step at a time.
 */
function stepMessage(key: Key): QueueMessage | undefined {
  const webhook = keys.webhookAt(key);
  if (webhook !== undefined) return pausedDrainMessage(webhook.companyId, webhook.id);
  const lane = fanOutKeys.laneAt(key);
  if (lane !== undefined) return fanOutMessage(lane);
  const replayed = replayKeys.replayAt(key);
  if (replayed !== undefined) return replayMessage(replayed.companyId, replayed.webhookId);
  const limiter = limiterKeys.limiterAt(key);
  return limiter === undefined ? undefined : throttledDrainMessage(limiter.companyId, limiter.id);
}
