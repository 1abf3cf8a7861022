/** Creates the deliveries of matches (pairs of an event and a subscription), or adds their events to debounce windows. May be repeated. */
import { allEnded, mapConcurrently } from "#shared/all-ended.ts";
import type { EventContext } from "#shared/context.ts";
import {
  deliveryId,
  deliveryItem,
  deliveryWithoutBody,
  newDelivery,
  StoredDelivery,
} from "#shared/webhooks/delivery.ts";
import { debounce, wasPublishedWithOtherDelay, windowKeyOf } from "#shared/webhooks/events/debounce.ts";
import type { Match } from "#shared/webhooks/events/matching.ts";
import { expectedWrites } from "#shared/webhooks/expected-deliveries.ts";
import { enqueue } from "#shared/webhooks/messages.ts";
import { delayMs } from "#shared/webhooks/retry-plan.ts";

/** Maximum number of concurrent calls to DynamoDB. More calls would only wait for a free connection. */
const PARALLEL = 12;

/** `entry` is the key in the list of expected deliveries, by default the event's id. Several calls for one event need different keys. */
export async function emit(context: EventContext, matches: readonly Match[], entry?: string): Promise<void> {
  const isPublished = await mapConcurrently(matches, PARALLEL, (match) =>
    wasPublishedWithOtherDelay(context.table, match),
  );
  const unpublished = matches.filter((_, i) => isPublished[i] === false);
  const isDelayed = ({ subscriber }: Match): boolean => subscriber.delayMinutes > 0;
  const immediate = unpublished.filter((match) => !isDelayed(match));
  const deliveries = [
    ...(await createDeliveries(context, immediate, entry)),
    ...(await addToWindows(context, unpublished.filter(isDelayed))),
  ];
  await enqueue(context, deliveries);
}

/** Returns the deliveries that need a first message. An existing delivery may need it too, because its creator may have been killed. */
async function createDeliveries(
  { table, timeScale, clock }: EventContext,
  matches: readonly Match[],
  entry: string | undefined,
): Promise<StoredDelivery[]> {
  const byId = new Map(
    matches.map((match) => {
      const delivery = deliveryFor(match, timeScale, clock.now());
      return [delivery.id, delivery] as const;
    }),
  );
  const deliveries = [...byId.values()];
  const expected = deliveries.map((delivery) => ({ ...delivery, eventId: entry ?? delivery.eventId }));
  // The list of expected deliveries comes first, so that reconciliation notices a delivery that is never written.
  await allEnded(expectedWrites(expected).map((write) => table.write(write)));
  const existing = await table.insert(deliveries.map((delivery) => ({ ...deliveryItem(delivery), id: delivery.id })));
  if (existing.length === 0) return deliveries;
  for (const { id } of existing) byId.delete(id);
  const rows = (await table.batchGet(existing)).map((row) => StoredDelivery.parse(row));
  return [...byId.values(), ...rows.filter(({ state, attempt }) => state === "waiting" && attempt === 1)];
}

function deliveryFor({ event, subscriber }: Match, timeScale: number, nowMs: number): StoredDelivery {
  const { companyId, webhookId, id: registrationId, delayMinutes } = subscriber;
  const { id: eventId, createdAt, data, isBulk } = event;
  const id = deliveryId(eventId, registrationId, createdAt);
  const about = { id, companyId, webhookId, registrationId, event: event.event, eventId, isBulk, createdAt };
  const planned = Date.parse(createdAt) + delayMs(delayMinutes, timeScale);
  // Deliveries of a bulk job are created at a limited rate. They are due at their creation, so that they do not count as overdue.
  const dueMs = isBulk ? Math.max(planned, nowMs) : planned;
  const input = { ...about, dueMs, trigger: "automatic", triggeredBy: null } as const;
  return data.text === undefined ? { ...deliveryWithoutBody(input), sharedData: true } : newDelivery(input, data.text);
}

/** Adds events of one window one after the other, and different windows concurrently. Returns the deliveries that need a message. */
async function addToWindows({ table, timeScale }: EventContext, matches: readonly Match[]): Promise<StoredDelivery[]> {
  const windows = Map.groupBy(matches, (match) => windowKeyOf(match).sk);
  const opened = await mapConcurrently([...windows.values()], PARALLEL, async (ofOneWindow) => {
    const deliveries: StoredDelivery[] = [];
    for (const match of ofOneWindow) {
      const delivery = await debounce(table, match, timeScale);
      if (delivery !== undefined) deliveries.push(delivery);
    }
    return deliveries;
  });
  return opened.flat();
}
