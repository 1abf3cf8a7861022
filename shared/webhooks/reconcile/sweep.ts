/** The sweeper sends a new queue message for each due delivery, backlog, replay and fan-out whose message was lost. */
import * as z from "zod/mini";
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
  type DrainMessage,
  drainMessage,
  type FanOutMessage,
  fanOutMessage,
  messageFor,
} from "#shared/webhooks/messages.ts";
import { companyOf, countOverdue, DueEntry, isDelivery, reportLag } from "#shared/webhooks/reconcile/lag.ts";
import { updateIf } from "#shared/webhooks/settle.ts";

/** After a purge of the queue, an operator chooses `messages-lost`. The sweeper then also queues deliveries that are not due. */
export const SweepInput = z.object({ assume: z.enum(["messages-kept", "messages-lost"]) });
export type SweepInput = z.infer<typeof SweepInput>;

/** If a delivery has been due for less than this time, its queue message probably still exists. */
const GRACE_MS = 30_000;
/** A delivery is queued at most once within this time. Otherwise each invocation would add another message for it. */
const SWEEP_AGAIN_MS = 10 * 60_000;
const TOGETHER = 10;
/** Maximum number of deliveries that one invocation handles, except with `messages-lost`. They take 20 s of processor time. */
export const CAPACITY = 10_000;
/** The function times out after 50 s. After `WORK_MS`, it handles no further entry, and after `METRICS_MS` it counts no further backlog. */
export const WORK_MS = 35_000;
const METRICS_MS = 42_000;

/** Returns a company's stride. With a stride of 3, every third due delivery of the company is handled. */
export type Strides = (companyId: number) => number;

/** Divides the capacity equally. If a company has fewer due deliveries (`counts`) than its share, the others divide the rest. */
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

/** Returns the number of queued messages. The first error is thrown at the end, after the other entries. */
export async function sweep(context: EventContext, { assume }: SweepInput): Promise<number> {
  const begun = context.clock.now();
  const isAll = assume === "messages-lost";
  const overdue = await countOverdue(context.table, iso(begun - GRACE_MS));
  const entries = isAll ? (pk: string) => context.table.query({ pk, index: "due" }) : overdue.again;
  const strides: Strides = isAll ? () => 1 : fairStrides(overdue.deliveries.byCompany, CAPACITY);
  const run = new Sweep(context, assume);
  const work = keys.dueShards().map((shard) => run.sweepShard(entries(shard), strides, begun + WORK_MS));
  const ends = await Promise.allSettled(work);
  // Errors of the report are ignored, because replacing lost messages is more important.
  await reportLag(context, overdue, begun + METRICS_MS).catch((error: unknown) =>
    log.error("lag not reported", errorFields(error)),
  );
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  // A row that cannot be read does not stop the other entries, but the alarm for errors must go off.
  if (run.firstError !== undefined) throw run.firstError;
  return run.queued;
}

class Sweep {
  queued = 0;
  firstError: unknown;
  readonly #context: EventContext;
  readonly #assume: SweepInput["assume"];
  /** The message groups of fan-outs that have already got a message. */
  readonly #fannedOut = new Set<string>();

  constructor(context: EventContext, assume: SweepInput["assume"]) {
    this.#context = context;
    this.#assume = assume;
  }

  /** Handles the entries of a partition in small groups. The strides limit only deliveries. Entries of other kinds are few. */
  async sweepShard(items: AsyncIterable<unknown> | Iterable<unknown>, strides: Strides, endMs: number): Promise<void> {
    const { clock } = this.#context;
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
      await this.#queueSome(taken);
      taken = [];
    }
    await this.#queueSome(taken);
  }

  async #queueSome(entries: readonly DueEntry[]): Promise<void> {
    const messages: Queued[] = [];
    for (const end of await Promise.allSettled(entries.map((entry) => this.#lostMessage(entry)))) {
      if (end.status === "rejected") this.firstError ??= end.reason;
      else if (end.value !== undefined) messages.push(end.value);
    }
    if (messages.length === 0) return;
    try {
      await this.#context.queue.send(messages);
      this.queued += messages.length;
    } catch (error) {
      this.firstError ??= error;
    }
  }

  /** Returns undefined if the entry needs no message. The index may be outdated, so the state of a delivery comes from its row. */
  async #lostMessage(key: DueEntry): Promise<Queued | undefined> {
    const step = stepMessage(key);
    if (step !== undefined && "fanOut" in step) {
      // A company has two lanes, ordinary events and events of its bulk jobs. One message is enough for all fan-outs of a lane.
      const lane = messageGroup(step);
      if (this.#fannedOut.has(lane)) return undefined;
      this.#fannedOut.add(lane);
    }
    if (step !== undefined) return { message: step, delaySeconds: 0 };
    const now = this.#context.clock.now();
    const isDue = any(missing("sweptAt"), below("sweptAt", iso(now - SWEEP_AGAIN_MS)));
    const isWaiting = equals("state", "waiting");
    const row = await updateIf(this.#context, {
      update: { pk: key.pk, sk: key.sk },
      change: { set: { sweptAt: iso(now) } },
      when: this.#assume === "messages-lost" ? isWaiting : all(isWaiting, isDue),
    });
    if (row === undefined) return undefined;
    const delivery = StoredDelivery.parse(row);
    return { message: messageFor(delivery), delaySeconds: delaySecondsUntil(Date.parse(delivery.dueAt), now) };
  }
}

/** The message for the next step of a backlog, replay or fan-out. A superfluous message does no harm, because of the lease. */
function stepMessage(key: Key): DrainMessage | FanOutMessage | undefined {
  const lane = fanOutKeys.laneAt(key);
  if (lane !== undefined) return fanOutMessage(lane);
  const resumed = keys.webhookAt(key);
  if (resumed !== undefined) return drainMessage(resumed, "paused");
  const replayed = replayKeys.replayAt(key);
  if (replayed !== undefined) return drainMessage(replayed, "replay");
  const throttled = limiterKeys.limiterAt(key);
  return throttled && drainMessage(throttled, "throttled");
}
