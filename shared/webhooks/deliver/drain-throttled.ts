/**
 * Sends what waits at the gate of a webhook: one look at a time, which sends as many at once as the webhook has places. So
 * whatever waits for one receiver keeps a single sender busy.
 */

import * as z from "zod/mini";
import { allEnded } from "#shared/all-ended.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { any, atMost, equals, missing } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { gateKeys } from "#shared/db/limiter-keys.ts";
import { tryDeliveries } from "#shared/webhooks/deliver/deliver.ts";
import { hold } from "#shared/webhooks/deliver/paused-backlog.ts";
import { type LookMessage, messageFor, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { LEASE_MS, StoredGate, slotsOf, takesMany } from "#shared/webhooks/limiter/limiter.ts";
import { FULL_MS, sendLook, written } from "#shared/webhooks/limiter/throttled-backlog.ts";
import { cancel } from "#shared/webhooks/settle.ts";
import { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

/** Deliveries that one look reads. */
const LOOK = 50;
/** Of which one place takes so many. */
const TOGETHER = 10;
/** A look begins no further exchange after this time: the function has to end with those that are under way. */
const BEGIN_WITHIN_MS = 3_000;
/** The due index lags behind the table: nobody waits if nobody is found for so long. */
const LAG_MS = 10_000;

/** Whoever comes second, or looks where nobody waits, changes nothing. */
export async function look(context: EventContext, { companyId, webhookId }: LookMessage): Promise<void> {
  const [item, webhookItem] = await Promise.all([
    context.table.get(gateKeys.gate(companyId, webhookId)),
    context.table.get(keys.webhook(companyId, webhookId)),
  ]);
  const gate = item === undefined ? undefined : StoredGate.parse(item);
  const now = context.clock.now();
  // Another look is under way, or planned with a message of its own.
  if (gate?.dueShard === undefined || (gate.lookUntil ?? "") > iso(now)) return;
  const key = gateKeys.gate(companyId, webhookId);
  const free = any(missing("lookUntil"), atMost("lookUntil", iso(now)));
  const change = { set: { lookUntil: iso(now + LEASE_MS) } };
  if (!(await written(context, { update: key, change, when: free }))) return;
  const webhook = webhookItem === undefined ? undefined : StoredWebhook.parse(webhookItem);
  const until = await lookOnce(context, gate, webhook);
  const rest = until === undefined ? { remove: ["lookUntil"] } : { set: { lookUntil: iso(until) } };
  await written(context, { update: key, change: rest, when: equals("lookUntil", change.set.lookUntil) });
  if (until !== undefined) await sendLook(context, companyId, webhookId, until);
}

/** Gives the time of the next look, or nothing when nobody waits any more. */
async function lookOnce(
  context: EventContext,
  gate: StoredGate,
  webhook: StoredWebhook | undefined,
): Promise<number | undefined> {
  const { openUntil = "" } = gate;
  const now = context.clock.now();
  if (webhook?.status === "active" && openUntil > iso(now)) return Date.parse(openUntil);
  const waiting = await oldest(context, gate, webhook === undefined);
  if (waiting === undefined) return close(context, gate);
  if (waiting.length === 0) return now + FULL_MS;
  if (webhook === undefined) await cancel(context, waiting);
  else if (webhook.status === "paused") for (const delivery of waiting) await hold(context, delivery);
  else return sendAll(context, gate, waiting);
  return context.clock.now();
}

/**
 * From as many places as there are, a quick receiver as many as a queue would bring at once; when the webhook can take no more,
 * the rest goes on waiting.
 */
async function sendAll(context: EventContext, gate: StoredGate, waiting: StoredDelivery[]): Promise<number> {
  const begun = context.clock.now();
  const isProbe = gate.openUntil !== undefined;
  let isFull = false;
  async function work(): Promise<void> {
    while (!isFull && waiting.length > 0 && context.clock.now() - begun < BEGIN_WITHIN_MS) {
      const some = waiting.splice(0, takesMany(gate) ? TOGETHER : 1);
      const batch = some.map((delivery) => ({ message: messageFor(delivery), isRepeat: false }));
      const { failed, turnedAway } = await tryDeliveries(context, batch);
      if (turnedAway.size > 0) isFull = true;
      for (const reason of failed.values()) throw reason;
    }
  }
  // To their end: what one has begun must not outlive this call.
  await allEnded(Array.from({ length: isProbe ? 1 : slotsOf(context.senders, gate.slow) }, work));
  const now = context.clock.now();
  if (!isFull) return now;
  const item = await context.table.get(gateKeys.gate(gate.companyId, gate.webhookId));
  const { openUntil = "" } = StoredGate.parse(item);
  return openUntil > iso(now) ? Date.parse(openUntil) : now + FULL_MS;
}

/** Twice, with the index's lag between: somebody who was turned away meanwhile has seen the gate looked after. */
async function close(context: EventContext, gate: StoredGate): Promise<number | undefined> {
  const { companyId, webhookId, emptySince } = gate;
  const now = context.clock.now();
  const key = gateKeys.gate(companyId, webhookId);
  if (emptySince === undefined) {
    await written(context, { update: key, change: { set: { emptySince: iso(now) } }, when: missing("emptySince") });
    return now + LAG_MS;
  }
  if (now - Date.parse(emptySince) < LAG_MS) return Date.parse(emptySince) + LAG_MS;
  const change = { remove: ["dueShard", "dueAt", "emptySince"] };
  return (await written(context, { update: key, change, when: equals("emptySince", emptySince) })) ? undefined : now;
}

const Place = z.object({ pk: z.string(), sk: z.string() });

/**
 * The oldest ones; the index tells where they stand, the rows what they are: none of what it names may wait any more. Of a
 * webhook that is gone, also what it kept. Undefined: the index names nothing.
 */
async function oldest(
  { table }: EventContext,
  { companyId, webhookId }: StoredGate,
  withHeld: boolean,
): Promise<StoredDelivery[] | undefined> {
  const places: z.infer<typeof Place>[] = [];
  const shards = [keys.gatedShard(companyId, webhookId), ...(withHeld ? [keys.heldShard(companyId, webhookId)] : [])];
  for (const pk of shards) {
    for await (const item of table.query({ pk, index: "due", pageItems: LOOK })) {
      if (places.push(Place.parse(item)) >= LOOK) break;
    }
  }
  if (places.length === 0) return undefined;
  const rows = (await table.batchGet(places)).map((row) => StoredDelivery.parse(row));
  return rows
    .filter(({ state, dueShard }) => state === "waiting" && dueShard !== undefined && shards.includes(dueShard))
    .sort((a, b) => (a.dueAt < b.dueAt ? -1 : a.dueAt > b.dueAt ? 1 : a.id < b.id ? -1 : 1));
}
