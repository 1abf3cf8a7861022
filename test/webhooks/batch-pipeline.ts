/** Extends the simulated delivery pipeline to stream batches of several events and to function calls with several messages. */
import { setImmediate as turn } from "node:timers/promises";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import { consume } from "#shared/webhooks/deliver/consume.ts";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import { Killed, killable } from "../harness/killable.ts";
import { createdProspect, type Pipeline } from "./delivery-pipeline.ts";

/** SQS passes at most this many messages to one call of the function. */
const BATCH = 10;
const VISIBILITY_MS = 90_000;

export async function publishIds(at: Pipeline, ids: readonly number[]): Promise<void> {
  const context = killable(at.context);
  const changes = ids.map((id) => ({ before: undefined, after: createdProspect(at.companyId, id) }));
  await publishChanges(context, batchReads(context), changes);
}

/** Makes the limiter of concurrent requests treat the receiver as quick, so that one slot is enough for a whole batch. */
export async function beQuick({ db, companyId, webhookId }: Pipeline): Promise<void> {
  const quick = { type: "gate", companyId, webhookId, used: 0, fails: 0, slow: false };
  await db.direct.write({ put: { ...limiterKeys.limiter(companyId, webhookId), ...quick } });
}

/**
 * Simulates one call of the function and returns the number of failed messages, which return to the queue. After a kill, all messages count
 * as failed.
 */
export async function consumeSome(at: Pipeline, entries: Pipeline["queue"]): Promise<number> {
  const ends = await consume(killable(at.context), entries);
  const isKilled = ends.some((end) => end.status === "rejected" && end.reason instanceof Killed);
  const back = entries.filter((_, i) => isKilled || ends[i]?.status !== "fulfilled");
  for (const { message } of back) at.queue.push({ message, at: at.clock + VISIBILITY_MS, isRepeat: true });
  return back.length;
}

/** Passes visible messages to the function, up to ten at a time, until the queue is empty. */
export async function drainBatches(at: Pipeline): Promise<void> {
  for (let steps = 0; at.queue.length > 0; steps++) {
    if (steps > 200) throw new Error("the queue does not come to rest");
    at.queue.sort((a, b) => a.at - b.at);
    at.clock = Math.max(at.clock, at.queue[0]?.at ?? 0);
    const visible = at.queue.findIndex((entry) => entry.at > at.clock);
    await consumeSome(at, at.queue.splice(0, Math.min(BATCH, visible === -1 ? BATCH : visible)));
  }
  // Concurrent work of a killed call must end first, because it would disturb the next step.
  await turn();
}
