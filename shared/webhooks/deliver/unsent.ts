/**
 * Deliveries whose request never left us: no name server answered, there was no socket, no request could be built. They use up no
 * attempt and count for no breaker; they wait at the gate, which lets one of them try at a time, at a calm pace.
 */
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { any, atMost, missing } from "#shared/db/expression.ts";
import { gateKeys } from "#shared/db/limiter-keys.ts";
import { log } from "#shared/log.ts";
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { attemptWrite, newGate, openMs, type Place, StoredGate, vacate } from "#shared/webhooks/limiter/limiter.ts";
import { FULL_MS, waitAtGate } from "#shared/webhooks/limiter/throttled-backlog.ts";
import { UNSENT_MS } from "#shared/webhooks/retry-plan.ts";

/** For as long as all attempts would have taken it was due, and none could be made: the delivery comes to its end. */
export const isGivenUp = ({ clock, timeScale }: EventContext, { dueAt }: StoredDelivery): boolean =>
  (clock.now() - Date.parse(dueAt)) * timeScale >= UNSENT_MS;

/** `slot`: nothing left from this place, so it is given back, and the gate rests. */
export async function waitUnsent(
  context: EventContext,
  place: Place,
  deliveries: readonly StoredDelivery[],
  slot: string | undefined,
): Promise<void> {
  const { companyId, webhookId } = place;
  const until = slot === undefined ? iso(context.clock.now() + FULL_MS) : await rest(context, place, slot);
  log.warn("not sent", { companyId, webhookId, deliveries: deliveries.length, until });
  const gate = await context.table.get(gateKeys.gate(companyId, webhookId));
  await waitAtGate(context, deliveries, { kind: "open", until }, gate ?? newGate(gateOf(place)));
}

/**
 * Gives the place back after requests that never left us. The gate rests, for as long as a breaker of so many openings would;
 * after that one delivery at a time finds out whether requests leave again. Gives the end of the rest.
 */
async function rest(context: EventContext, place: Place, slot: string): Promise<string> {
  const now = context.clock.now();
  const { companyId, webhookId } = place;
  const { unsent, openUntil = "" } = StoredGate.parse(
    (await vacate(context, place, slot, {})) ?? newGate(gateOf(place)),
  );
  if (openUntil > iso(now)) return openUntil;
  const until = iso(now + openMs(unsent) / context.timeScale);
  const when = any(missing("openUntil"), atMost("openUntil", iso(now)));
  const change = { set: { openUntil: until }, add: { unsent: 1 } };
  await attemptWrite(context, { update: gateKeys.gate(companyId, webhookId), change, when });
  return until;
}

const gateOf = ({ companyId, webhookId }: Place) => ({ companyId, id: webhookId });
