/**
 * Deliveries whose request never left us: no name server answered, there was no socket, no request could be built. They use up no
 * attempt and count for no breaker; they wait at the gate, which lets one of them try at a time, at a calm pace.
 */
import { iso } from "#shared/clock.ts";
import { any, atMost, missing } from "#shared/db/expression.ts";
import { gateKeys } from "#shared/db/gate-keys.ts";
import { attemptWrite, newGate, openMs, type Place, StoredGate, vacate } from "#shared/deliveries/gate.ts";
import { UNSENT_MS } from "#shared/deliveries/plan.ts";
import type { StoredDelivery } from "#shared/deliveries/schema.ts";
import { FULL_MS, waitAtGate } from "#shared/deliveries/waiting.ts";
import type { EventWorld } from "#shared/events/world.ts";
import { log } from "#shared/log.ts";

/** For as long as all attempts would have taken it was due, and none could be made: the delivery comes to its end. */
export const isGivenUp = ({ clock, timeScale }: EventWorld, { dueAt }: StoredDelivery): boolean =>
  (clock.now() - Date.parse(dueAt)) * timeScale >= UNSENT_MS;

/** `slot`: nothing left from this place, so it is given back, and the gate rests. */
export async function waitUnsent(
  world: EventWorld,
  place: Place,
  deliveries: readonly StoredDelivery[],
  slot: string | undefined,
): Promise<void> {
  const { companyId, webhookId } = place;
  const until = slot === undefined ? iso(world.clock.now() + FULL_MS) : await rest(world, place, slot);
  log.warn("not sent", { companyId, webhookId, deliveries: deliveries.length, until });
  const gate = await world.table.get(gateKeys.gate(companyId, webhookId));
  await waitAtGate(world, deliveries, { kind: "open", until }, gate ?? newGate(gateOf(place)));
}

/**
 * Gives the place back after requests that never left us. The gate rests, for as long as a breaker of so many openings would;
 * after that one delivery at a time finds out whether requests leave again. Gives the end of the rest.
 */
async function rest(world: EventWorld, place: Place, slot: string): Promise<string> {
  const now = world.clock.now();
  const { companyId, webhookId } = place;
  const { unsent, openUntil = "" } = StoredGate.parse((await vacate(world, place, slot, {})) ?? newGate(gateOf(place)));
  if (openUntil > iso(now)) return openUntil;
  const until = iso(now + openMs(unsent) / world.timeScale);
  const when = any(missing("openUntil"), atMost("openUntil", iso(now)));
  const change = { set: { openUntil: until }, add: { unsent: 1 } };
  await attemptWrite(world, { update: gateKeys.gate(companyId, webhookId), change, when });
  return until;
}

const gateOf = ({ companyId, webhookId }: Place) => ({ companyId, id: webhookId });
