/** Extends the simulated webhook pipeline (delivery-pipeline.ts). The deliver function can get several queue messages in one call. */
import { setImmediate as turn } from "node:timers/promises";
import { consume } from "#shared/webhooks/deliver/consume.ts";
import { Killed, killable } from "../harness/killable.ts";
import { type Pipeline, putLimiter } from "./delivery-pipeline.ts";

/** Maximum number of messages that SQS passes to one call of the deliver function. */
const BATCH = 10;
const VISIBILITY_MS = 90_000;

/** Writes the limiter row of a quick receiver. A sender needs only one slot for a whole batch of deliveries to such a receiver. */
export const beQuick = (at: Pipeline): Promise<void> => putLimiter(at.db, at, { used: 0, fails: 0, slow: false });

/**
 * Simulates one call of the deliver function with several messages. Returns the number of failed messages, which the queue delivers
 * again. If the call is killed, all its messages fail.
 */
export async function consumeSome(at: Pipeline, entries: Pipeline["queue"]): Promise<number> {
  const ends = await consume(killable(at.context), entries);
  const isKilled = ends.some((end) => end.status === "rejected" && end.reason instanceof Killed);
  const back = entries.filter((_, i) => isKilled || ends[i]?.status !== "fulfilled");
  for (const { message } of back) at.queue.push({ message, at: at.clock + VISIBILITY_MS, isRepeat: true });
  return back.length;
}

/** Passes the queue's visible messages to the deliver function, up to ten at a time, until the queue is empty. */
export async function drainBatches(at: Pipeline): Promise<void> {
  for (let steps = 0; at.queue.length > 0; steps++) {
    if (steps > 200) throw new Error("the queue does not come to rest");
    at.queue.sort((a, b) => a.at - b.at);
    at.clock = Math.max(at.clock, at.queue[0]?.at ?? 0);
    const visible = at.queue.findIndex((entry) => entry.at > at.clock);
    await consumeSome(at, at.queue.splice(0, Math.min(BATCH, visible === -1 ? BATCH : visible)));
  }
  // If a test kills a call of the deliver function, the function may still have work in progress. Wait one turn of the event loop, so that
  // this work ends before the next call.
  await turn();
}
