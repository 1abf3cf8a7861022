/** Due deliveries of one webhook -> its gate: who is let in is sent, the others wait there or come back soon. */
import { iso } from "#shared/clock.ts";
import { gateKeys } from "#shared/db/gate-keys.ts";
import { keys } from "#shared/db/keys.ts";
import type { Item } from "#shared/db/table.ts";
import { enter, newGate, type Refusal, room } from "#shared/deliveries/gate.ts";
import { guarded, type Outcome } from "#shared/deliveries/outcome.ts";
import type { StoredDelivery } from "#shared/deliveries/schema.ts";
import { sendWith, standing } from "#shared/deliveries/send.ts";
import { enqueue } from "#shared/deliveries/settle.ts";
import { waitAtGate } from "#shared/deliveries/waiting.ts";
import type { EventWorld } from "#shared/events/world.ts";
import type { StoredWebhook } from "#shared/webhooks/schema.ts";

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
  world: EventWorld,
  webhook: StoredWebhook,
  item: Item | undefined,
  deliveries: readonly StoredDelivery[],
  outcome: Outcome,
): Promise<void> {
  const patience = { looks: LOOKS };
  const gate = await withRoom(world, webhook, item ?? newGate(webhook), patience);
  const { free, isForMany, refusal } = room(gate, world.clock.now(), world.senders);
  const groups = isForMany ? [deliveries] : deliveries.map((delivery) => [delivery]);
  const left = groups.slice(free).flat();
  await Promise.all([
    ...groups
      .slice(0, free)
      .map((group) => guarded(outcome, group, () => enterWith(world, webhook, gate, group, patience, outcome))),
    guarded(outcome, left, () => turnAway(world, gate, left, refusal, outcome)),
  ]);
}

/** Looks that are left. */
interface Patience {
  looks: number;
}

/** The gate as it was read last: it is looked at again while there is about to be room. */
async function withRoom(world: EventWorld, webhook: StoredWebhook, read: Item, patience: Patience): Promise<Item> {
  for (let gate = read; ; ) {
    const { free, refusal } = room(gate, world.clock.now(), world.senders);
    const next = free === 0 && refusal.kind === "soon" ? await lookAgain(world, webhook, patience) : undefined;
    if (next === undefined) return gate;
    gate = next;
  }
}

/** Undefined: it has been looked at often enough. */
async function lookAgain(
  { table, rest }: EventWorld,
  webhook: StoredWebhook,
  patience: Patience,
): Promise<Item | undefined> {
  if (patience.looks === 0) return undefined;
  patience.looks--;
  await rest(LOOK_AFTER_MS);
  return (await table.get(gateKeys.gate(webhook.companyId, webhook.id))) ?? newGate(webhook);
}

async function enterWith(
  world: EventWorld,
  webhook: StoredWebhook,
  read: Item,
  group: readonly StoredDelivery[],
  patience: Patience,
  outcome: Outcome,
): Promise<void> {
  const { companyId, id: webhookId } = webhook;
  let gate = read;
  for (let left = group; left.length > 0; ) {
    const entry = await enter(world, { companyId, webhookId, ids: left.map(({ id }) => id) });
    if (entry.kind === "in") return sendWith(world, webhook, left, entry.slot, outcome);
    const next = entry.kind === "soon" ? await lookAgain(world, webhook, patience) : undefined;
    if (next !== undefined) {
      gate = next;
      continue;
    }
    if (entry.kind !== "taken") return turnAway(world, gate, left, entry, outcome);
    const taken = await standing(
      world,
      left.filter(({ id }) => entry.ids.includes(id)),
    );
    await enqueue(
      world,
      taken.map((delivery) => ({ ...delivery, dueAt: entry.until })),
    );
    left = left.filter(({ id }) => !entry.ids.includes(id));
  }
}

async function turnAway(
  world: EventWorld,
  gate: Item,
  deliveries: readonly StoredDelivery[],
  refusal: Refusal,
  { turnedAway }: Outcome,
): Promise<void> {
  for (const { id } of deliveries) turnedAway.add(id);
  if (refusal.kind !== "soon") return waitAtGate(world, deliveries, refusal, gate);
  const dueAt = iso(world.clock.now() + SOON_MS);
  // What waits at the gate needs no message of its own, but whoever put it there may have died before somebody looks after it.
  const gated = deliveries.filter(
    ({ companyId, webhookId, dueShard }) => dueShard === keys.gatedShard(companyId, webhookId),
  );
  await waitAtGate(world, gated, { kind: "full" }, gate);
  const own = deliveries.filter(({ id, dueShard }) => dueShard === keys.dueShard(id));
  await enqueue(
    world,
    own.map((delivery) => ({ ...delivery, dueAt })),
  );
}
