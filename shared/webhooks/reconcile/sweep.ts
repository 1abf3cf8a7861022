/** Finds deliveries that are due and whose message is gone, and queues them again; releases, replays, looks at gates and fan-outs alike. */

import * as z from "zod/mini";
import { allEnded } from "#shared/all-ended.ts";
import { delaySecondsUntil, type Queued } from "#shared/aws/queue.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { all, any, below, equals, missing } from "#shared/db/expression.ts";
import { fanOutKeys } from "#shared/db/fan-out-keys.ts";
import { keys } from "#shared/db/keys.ts";
import { gateKeys } from "#shared/db/limiter-keys.ts";
import { replayKeys } from "#shared/db/replay-keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { errorFields, log } from "#shared/log.ts";
import { releaseMessage } from "#shared/webhooks/deliver/drain-paused.ts";
import { replayMessage } from "#shared/webhooks/deliver/replay.ts";
import { fanOutMessage, messageFor, type QueueMessage, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { lookMessage } from "#shared/webhooks/limiter/throttled-backlog.ts";
import { companyOf, countOverdue, DueEntry, isDelivery, shards } from "#shared/webhooks/reconcile/due-entries.ts";
import { tellLag } from "#shared/webhooks/reconcile/lag.ts";
import { fairStrides, type Strides } from "#shared/webhooks/reconcile/sweep-share.ts";

/** `messages-lost`: the queue was purged or began empty, so everything that waits is queued again, whenever it is due. */
export const SweepInput = z.object({ assume: z.enum(["messages-kept", "messages-lost"]) });
export type SweepInput = z.infer<typeof SweepInput>;

/** A delivery due for less than this is taken to have its message still. */
const GRACE_MS = 30_000;
/** A delivery that was queued again is left alone this long, so that a backlog is not doubled every minute. */
const SWEEP_AGAIN_MS = 10 * 60_000;
/** Entries that are written at the same time and queued in one call, for each shard of the index. */
const TOGETHER = 10;
/** Entries of one run: at two milliseconds of processor time each they take half of the function's 50 s. */
export const CAPACITY = 10_000;
/** After these times a run begins with nothing more: the function ends after 50 s. */
const WORK_MS = 35_000;
const METRICS_MS = 42_000;

/** @returns how many deliveries were queued again. */
export async function sweep(context: EventContext, { assume }: SweepInput): Promise<number> {
  const begun = context.clock.now();
  const isAll = assume === "messages-lost";
  const overdue = await countOverdue(context.table, isAll ? undefined : iso(begun - GRACE_MS));
  const strides: Strides = isAll ? () => 1 : fairStrides(overdue.deliveries.byCompany, CAPACITY);
  const endMs = isAll ? Number.POSITIVE_INFINITY : begun + WORK_MS;
  const run: Run = { context, assume, queued: 0, fannedOut: new Set(), failed: [] };
  const work = shards().map((shard) => sweepShard(run, overdue.again(shard), strides, endMs));
  const ends = await Promise.allSettled(work);
  // Metrics come last and stop nothing: a message that is lost counts more than a figure.
  await tellLag(context, overdue, begun + METRICS_MS).catch((error: unknown) =>
    log.error("the lag was not told", errorFields(error)),
  );
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  // A row that cannot be read keeps none of the others, but the run counts as failed.
  if (run.failed.length > 0) throw run.failed[0];
  return run.queued;
}

interface Run {
  readonly context: EventContext;
  readonly assume: SweepInput["assume"];
  queued: number;
  /** Companies whose fan-outs have got their message. */
  readonly fannedOut: Set<number>;
  /** The first failure. */
  readonly failed: unknown[];
}

/** Goes through the entries page by page while it works on them. Of anything but deliveries a webhook has a few: all are taken. */
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
      const place = seen.get(companyId) ?? 0;
      seen.set(companyId, place + 1);
      if ((place + minute) % strides(companyId) !== 0) continue;
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
      if (run.failed.length === 0) run.failed.push(error);
    }
  };
  await allEnded(
    entries.map((entry) =>
      guarded(async () => {
        const queued = await messageAgain(run, entry);
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

/** The index lags behind the table, so the row of a delivery decides itself. Undefined: it has its message. */
async function messageAgain({ context, assume, fannedOut }: Run, { pk, sk }: DueEntry): Promise<Queued | undefined> {
  const step = stepAt({ pk, sk });
  // One message goes on with all events of a company, however many wait.
  if (step !== undefined && "fanOut" in step && fannedOut.has(step.companyId)) return undefined;
  if (step !== undefined && "fanOut" in step) fannedOut.add(step.companyId);
  if (step !== undefined) return { message: step, delaySeconds: 0 };
  const now = context.clock.now();
  const fresh = any(missing("sweptAt"), below("sweptAt", iso(now - SWEEP_AGAIN_MS)));
  const waiting = equals("state", "waiting");
  try {
    const item = await context.table.write({
      update: { pk, sk },
      change: { set: { sweptAt: iso(now) } },
      when: assume === "messages-lost" ? waiting : all(waiting, fresh),
    });
    const delivery = StoredDelivery.parse(item);
    return { message: messageFor(delivery), delaySeconds: delaySecondsUntil(Date.parse(delivery.dueAt), now) };
  } catch (error) {
    if (error instanceof ConditionFailed) return undefined;
    throw error;
  }
}

/** Of work in steps: one message too many changes nothing, for its row says how far it is. */
function stepAt(place: { readonly pk: string; readonly sk: string }): QueueMessage | undefined {
  const webhook = keys.webhookAt(place);
  if (webhook !== undefined) return releaseMessage(webhook.companyId, webhook.id);
  const fannedOut = fanOutKeys.companyAt(place);
  if (fannedOut !== undefined) return fanOutMessage(fannedOut);
  const replayed = replayKeys.replayAt(place);
  if (replayed !== undefined) return replayMessage(replayed.companyId, replayed.webhookId);
  const gate = gateKeys.gateAt(place);
  return gate === undefined ? undefined : lookMessage(gate.companyId, gate.id);
}
