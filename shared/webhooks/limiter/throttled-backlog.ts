/** What is turned away at the gate of its webhook waits there, in the order of time; who looks after it is seen to. */

import { delaySecondsUntil } from "#shared/aws/queue.ts";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { updateEach } from "#shared/db/each.ts";
import { any, exists, missing } from "#shared/db/expression.ts";
import type { Item } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { gateKeys } from "#shared/db/limiter-keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import type { LookMessage, StoredDelivery } from "#shared/webhooks/delivery.ts";
import { markedGate } from "#shared/webhooks/limiter/backlog-mark.ts";
import { newGate, type Refusal, StoredGate } from "#shared/webhooks/limiter/limiter.ts";
import { whileAttemptStands } from "#shared/webhooks/settle.ts";

/** While all places are taken: the next look comes after so long. */
export const FULL_MS = 2_000;

/**
 * No attempt is used up and the time it was due stays. The gate, given as it was read, is marked before anybody waits there: who
 * dies in between, and its message with it, leaves them to whoever looks. Who looks may meanwhile have seen nobody wait: so the
 * gate is read once more.
 */
export async function waitAtGate(
  context: EventContext,
  deliveries: readonly StoredDelivery[],
  entry: Extract<Refusal, { kind: "full" | "open" }>,
  gate: Item,
): Promise<void> {
  const [first] = deliveries;
  if (first === undefined) return;
  const { companyId, webhookId } = first;
  const isMarked = await mark(context, gate);
  const gated = keys.gatedShard(companyId, webhookId);
  const coming = deliveries.filter(({ dueShard }) => dueShard !== gated);
  const change = { set: { dueShard: gated, updatedAt: iso(context.clock.now()) }, remove: ["sweptAt"] };
  const updates = coming.map((delivery) => whileAttemptStands(delivery, change));
  await updateEach(context.table, updates);
  const now = await context.table.get(gateKeys.gate(companyId, webhookId));
  const isMarkedAgain = await mark(context, now ?? newGate({ companyId, id: webhookId }));
  if (!isMarked && !isMarkedAgain) return;
  await sendLook(
    context,
    companyId,
    webhookId,
    entry.kind === "open" ? Date.parse(entry.until) : context.clock.now() + FULL_MS,
  );
}

/** False where somebody looks after the gate and has seen it wanted. */
async function mark(context: EventContext, item: Item): Promise<boolean> {
  const { companyId, webhookId, dueShard, emptySince } = StoredGate.parse(item);
  if (dueShard !== undefined && emptySince === undefined) return false;
  return written(context, {
    update: gateKeys.gate(companyId, webhookId),
    change: { set: markedGate(companyId, webhookId, context.clock.now()), remove: ["emptySince"] },
    when: any(missing("dueShard"), exists("emptySince")),
  });
}

export const lookMessage = (companyId: number, webhookId: number): LookMessage => ({
  v: 1,
  look: true,
  companyId,
  webhookId,
});

export const sendLook = ({ queue, clock }: EventContext, companyId: number, webhookId: number, atMs: number) =>
  queue.send([{ message: lookMessage(companyId, webhookId), delaySeconds: delaySecondsUntil(atMs, clock.now()) }]);

/** False where the condition did not hold. */
export async function written(
  { table }: EventContext,
  write: Parameters<EventContext["table"]["write"]>[0],
): Promise<boolean> {
  try {
    await table.write(write);
    return true;
  } catch (error) {
    if (error instanceof ConditionFailed) return false;
    throw error;
  }
}
