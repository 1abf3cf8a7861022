/** Due deliveries of one webhook -> its gate: who is let in is sent, the others wait there or come back soon. */
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import type { Item } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { gateKeys } from "#shared/db/limiter-keys.ts";
import { sendWith, standing } from "#shared/webhooks/deliver/send.ts";
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { enter, newGate, type Refusal, room } from "#shared/webhooks/limiter/limiter.ts";
import { waitAtGate } from "#shared/webhooks/limiter/throttled-backlog.ts";
import { guarded, type Outcome } from "#shared/webhooks/outcome.ts";
import { enqueue } from "#shared/webhooks/settle.ts";
import type { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

/** A quick receiver's places are free again by then. */
const SOON_MS = 1_000;
/**
 * Most are much sooner: a sender looks so often, after so long, before it leaves. What comes back in a second has been received,
 * read and queued for nothing; and whoever else could have had the sender waits no longer than all of these.
 */
export const LOOKS = 3;
export const LOOK_AFTER_MS = 20;

/**
 * A place bounds how many senders are busy with the webhook, and whoever has it alone has its deliveries in hands. A quick
 * receiver gets all of them from one place; of any other each takes one, as far as there are some. Whom the gate as it was read
 * would refuse does not ask.
 */
export async function throughGate(
  context: EventContext,
  webhook: StoredWebhook,
  item: Item | undefined,
  deliveries: readonly StoredDelivery[],
  outcome: Outcome,
): Promise<void> {
  const patience = { looks: LOOKS };
  const gate = await withRoom(context, webhook, item ?? newGate(webhook), patience);
  const { free, isForMany, refusal } = room(gate, context.clock.now(), context.senders);
  const groups = isForMany ? [deliveries] : deliveries.map((delivery) => [delivery]);
  const left = groups.slice(free).flat();
  await Promise.all([
    ...groups
      .slice(0, free)
      .map((group) => guarded(outcome, group, () => enterWith(context, webhook, gate, group, patience, outcome))),
    guarded(outcome, left, () => turnAway(context, gate, left, refusal, outcome)),
  ]);
}

/** Looks that are left. */
interface Patience {
  looks: number;
}

/** The gate as it was read last: it is looked at again while there is about to be room. */
async function withRoom(context: EventContext, webhook: StoredWebhook, read: Item, patience: Patience): Promise<Item> {
  for (let gate = read; ; ) {
    const { free, refusal } = room(gate, context.clock.now(), context.senders);
    const next = free === 0 && refusal.kind === "soon" ? await lookAgain(context, webhook, patience) : undefined;
    if (next === undefined) return gate;
    gate = next;
  }
}

/** Undefined: it has been looked at often enough. */
async function lookAgain(
  { table, wait }: EventContext,
  webhook: StoredWebhook,
  patience: Patience,
): Promise<Item | undefined> {
  if (patience.looks === 0) return undefined;
  patience.looks--;
  await wait(LOOK_AFTER_MS);
  return (await table.get(gateKeys.gate(webhook.companyId, webhook.id))) ?? newGate(webhook);
}

async function enterWith(
  context: EventContext,
  webhook: StoredWebhook,
  read: Item,
  group: readonly StoredDelivery[],
  patience: Patience,
  outcome: Outcome,
): Promise<void> {
  const { companyId, id: webhookId } = webhook;
  let gate = read;
  for (let left = group; left.length > 0; ) {
    const entry = await enter(context, { companyId, webhookId, ids: left.map(({ id }) => id) });
    if (entry.kind === "in") return sendWith(context, webhook, left, entry.slot, outcome);
    const next = entry.kind === "soon" ? await lookAgain(context, webhook, patience) : undefined;
    if (next !== undefined) {
      gate = next;
      continue;
    }
    if (entry.kind !== "taken") return turnAway(context, gate, left, entry, outcome);
    const taken = await standing(
      context,
      left.filter(({ id }) => entry.ids.includes(id)),
    );
    await enqueue(
      context,
      taken.map((delivery) => ({ ...delivery, dueAt: entry.until })),
    );
    left = left.filter(({ id }) => !entry.ids.includes(id));
  }
}

async function turnAway(
  context: EventContext,
  gate: Item,
  deliveries: readonly StoredDelivery[],
  refusal: Refusal,
  { turnedAway }: Outcome,
): Promise<void> {
  for (const { id } of deliveries) turnedAway.add(id);
  if (refusal.kind !== "soon") return waitAtGate(context, deliveries, refusal, gate);
  const dueAt = iso(context.clock.now() + SOON_MS);
  // What waits at the gate needs no message of its own, but whoever put it there may have died before somebody looks after it.
  const gated = deliveries.filter(
    ({ companyId, webhookId, dueShard }) => dueShard === keys.gatedShard(companyId, webhookId),
  );
  await waitAtGate(context, gated, { kind: "full" }, gate);
  const own = deliveries.filter(({ id, dueShard }) => dueShard === keys.dueShard(id));
  await enqueue(
    context,
    own.map((delivery) => ({ ...delivery, dueAt })),
  );
}
