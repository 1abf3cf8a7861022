/** Which registrations want an event, and the delivery that each of them gets. */
import { iso } from "#shared/clock.ts";
import { keys } from "#shared/db/keys.ts";
import { deliveryId } from "#shared/deliveries/identity.ts";
import type { StoredDelivery } from "#shared/deliveries/schema.ts";
import type { DomainEvent } from "#shared/events/catalogue.ts";
import { limits } from "#shared/limits.ts";
import { matchesFilter } from "#shared/webhooks/filter.ts";
import type { StoredRegistration } from "#shared/webhooks/schema.ts";
import { filterOf, type WebhookRows } from "#shared/webhooks/webhooks.ts";

const MS_PER_MINUTE = 60_000;

/** Automatic registrations for this event whose filter its data meets. */
export function matchingRegistrations(event: DomainEvent, webhooks: readonly WebhookRows[]): StoredRegistration[] {
  return webhooks
    .flatMap(({ registrations }) => registrations)
    .filter(({ event: name, triggerMode }) => name === event.event && triggerMode === "automatic")
    .filter((registration) => matchesFilter(filterOf(registration), event.data));
}

/** The delivery of an event to a registration: the same each time the stream repeats the event. */
export function deliveryFor(event: DomainEvent, registration: StoredRegistration, timeScale: number): StoredDelivery {
  const { companyId, webhookId, id: registrationId, delayMinutes } = registration;
  const id = deliveryId(event.id, registrationId, event.createdAt);
  const createdMs = Date.parse(event.createdAt);
  return {
    type: "delivery",
    id,
    companyId,
    webhookId,
    registrationId,
    event: event.event,
    eventId: event.id,
    state: "waiting",
    attempt: 1,
    planFrom: 1,
    dueAt: iso(createdMs + (delayMinutes * MS_PER_MINUTE) / timeScale),
    dueShard: keys.dueShard(id),
    body: JSON.stringify({
      id,
      event: event.event,
      createdAt: event.createdAt,
      companyId,
      webhookId,
      registrationId,
      trigger: "automatic",
      triggeredBy: null,
      eventCount: 1,
      data: event.data,
    }),
    createdAt: event.createdAt,
    updatedAt: event.createdAt,
    expiresAt: Math.floor((createdMs + limits.deliveryKeptMs) / 1_000),
  };
}
