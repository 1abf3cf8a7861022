/** What is turned away at the gate of its webhook waits there, in the order of time; who looks after it is seen to. */

import { iso } from "#shared/clock.ts";
import { updateEach } from "#shared/db/each.ts";
import { ConditionFailed } from "#shared/db/errors.ts";
import { any, exists, missing } from "#shared/db/expression.ts";
import { gateKeys } from "#shared/db/gate-keys.ts";
import { keys } from "#shared/db/keys.ts";
import type { Item } from "#shared/db/table.ts";
import { newGate, type Refusal, StoredGate } from "#shared/deliveries/gate.ts";
import { markedGate } from "#shared/deliveries/gate-mark.ts";
import type { LookMessage, StoredDelivery } from "#shared/deliveries/schema.ts";
import { whileAttemptStands } from "#shared/deliveries/settle.ts";
import type { EventWorld } from "#shared/events/world.ts";
import { delaySecondsUntil } from "#shared/queue.ts";

/** While all places are taken: the next look comes after so long. */
export const FULL_MS = 2_000;

/**
 * No attempt is used up and the time it was due stays. The gate, given as it was read, is marked before anybody waits there: who
 * dies in between, and its message with it, leaves them to whoever looks. Who looks may meanwhile have seen nobody wait: so the
 * gate is read once more.
 */
export async function waitAtGate(
  world: EventWorld,
  deliveries: readonly StoredDelivery[],
  entry: Extract<Refusal, { kind: "full" | "open" }>,
  gate: Item,
): Promise<void> {
  const [first] = deliveries;
  if (first === undefined) return;
  const { companyId, webhookId } = first;
  const isMarked = await mark(world, gate);
  const gated = keys.gatedShard(companyId, webhookId);
  const coming = deliveries.filter(({ dueShard }) => dueShard !== gated);
  const change = { set: { dueShard: gated, updatedAt: iso(world.clock.now()) }, remove: ["sweptAt"] };
  const updates = coming.map((delivery) => whileAttemptStands(delivery, change));
  await updateEach(world.table, updates);
  const now = await world.table.get(gateKeys.gate(companyId, webhookId));
  const isMarkedAgain = await mark(world, now ?? newGate({ companyId, id: webhookId }));
  if (!isMarked && !isMarkedAgain) return;
  await sendLook(
    world,
    companyId,
    webhookId,
    entry.kind === "open" ? Date.parse(entry.until) : world.clock.now() + FULL_MS,
  );
}

/** False where somebody looks after the gate and has seen it wanted. */
async function mark(world: EventWorld, item: Item): Promise<boolean> {
  const { companyId, webhookId, dueShard, emptySince } = StoredGate.parse(item);
  if (dueShard !== undefined && emptySince === undefined) return false;
  return written(world, {
    update: gateKeys.gate(companyId, webhookId),
    change: { set: markedGate(companyId, webhookId, world.clock.now()), remove: ["emptySince"] },
    when: any(missing("dueShard"), exists("emptySince")),
  });
}

export const lookMessage = (companyId: number, webhookId: number): LookMessage => ({
  v: 1,
  look: true,
  companyId,
  webhookId,
});

export const sendLook = ({ queue, clock }: EventWorld, companyId: number, webhookId: number, atMs: number) =>
  queue.send([{ message: lookMessage(companyId, webhookId), delaySeconds: delaySecondsUntil(atMs, clock.now()) }]);

/** False where the condition did not hold. */
export async function written(
  { table }: EventWorld,
  write: Parameters<EventWorld["table"]["write"]>[0],
): Promise<boolean> {
  try {
    await table.write(write);
    return true;
  } catch (error) {
    if (error instanceof ConditionFailed) return false;
    throw error;
  }
}
