/** What is turned away at the gate of its webhook waits there, in the order of time; who looks after it is seen to. */

import { iso } from "#shared/clock.ts";
import { updateEach } from "#shared/db/each.ts";
import { ConditionFailed } from "#shared/db/errors.ts";
import { any, exists, missing } from "#shared/db/expression.ts";
import { gateKeys } from "#shared/db/gate-keys.ts";
import { keys } from "#shared/db/keys.ts";
import { type Refusal, StoredGate } from "#shared/deliveries/gate.ts";
import { markedGate } from "#shared/deliveries/gate-mark.ts";
import type { LookMessage, StoredDelivery } from "#shared/deliveries/schema.ts";
import { whileAttemptStands } from "#shared/deliveries/settle.ts";
import type { EventWorld } from "#shared/events/world.ts";
import { delaySecondsUntil } from "#shared/queue.ts";

/** While all places are taken: the next look comes after so long. */
export const FULL_MS = 2_000;

/**
 * No attempt is used up and the time it was due stays. Who looks may just have seen nobody wait: so the gate is read once
 * more, and marked if it is not.
 */
export async function waitAtGate(
  world: EventWorld,
  deliveries: readonly StoredDelivery[],
  entry: Extract<Refusal, { kind: "full" | "open" }>,
): Promise<void> {
  const [first] = deliveries;
  if (first === undefined) return;
  const { companyId, webhookId } = first;
  const gated = keys.gatedShard(companyId, webhookId);
  const coming = deliveries.filter(({ dueShard }) => dueShard !== gated);
  const change = { set: { dueShard: gated, updatedAt: iso(world.clock.now()) }, remove: ["sweptAt"] };
  const updates = coming.map((delivery) => whileAttemptStands(delivery, change));
  const refused = await updateEach(world.table, updates);
  if (refused.length === deliveries.length) return;
  const item = await world.table.get(gateKeys.gate(companyId, webhookId));
  const gate = item === undefined ? undefined : StoredGate.parse(item);
  if (gate?.dueShard !== undefined && gate.emptySince === undefined) return;
  const now = world.clock.now();
  const lookAt = entry.kind === "open" ? Date.parse(entry.until) : now + FULL_MS;
  const unmarked = any(missing("dueShard"), exists("emptySince"));
  const marks = { set: markedGate(companyId, webhookId, now), remove: ["emptySince"] };
  if (!(await written(world, { update: gateKeys.gate(companyId, webhookId), change: marks, when: unmarked }))) return;
  await sendLook(world, companyId, webhookId, lookAt);
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
