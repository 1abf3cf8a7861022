/** Which registrations want an event, and the delivery that each of them gets. */

import type { StoredDelivery } from "#shared/webhooks/delivery.ts";
import { deliveryId } from "#shared/webhooks/delivery-id.ts";
import type { EventData } from "#shared/webhooks/event-data.ts";
import type { DomainEvent } from "#shared/webhooks/events/catalogue.ts";
import type { Subscription, Subscriptions } from "#shared/webhooks/events/subscriptions-cache.ts";
import { newDelivery, sharingDelivery } from "#shared/webhooks/new-delivery.ts";
import { delayMs } from "#shared/webhooks/retry-plan.ts";
import { matchesFilter } from "#shared/webhooks/subscriptions/filter.ts";
import type { StoredRegistration } from "#shared/webhooks/subscriptions/schema.ts";
import { filterOf } from "#shared/webhooks/subscriptions/webhooks.ts";

/** An event whose data is at hand as text, or has a row of its own. */
export interface KeptEvent extends Omit<DomainEvent, "data" | "event"> {
  readonly event: string;
  readonly data: EventData;
}

/** What a delivery takes from the registration that wants it. */
export type Wanting = Pick<StoredRegistration, "companyId" | "webhookId" | "id" | "delayMinutes" | "delayChangedAt">;

/**
 * Subscriptions to this event whose filter its data meets. Neighbours in the list are of different webhooks: senders that take
 * them one after the other do not meet at the limit of one receiver.
 */
export function matchingRegistrations(event: DomainEvent, subscriptions: Subscriptions): Subscription[] {
  const wanting = (subscriptions.get(event.event) ?? []).map((own) =>
    own.filter((subscription) => matchesFilter(filterOf(subscription), event.data)),
  );
  const most = wanting.reduce((longest, { length }) => Math.max(longest, length), 0);
  return Array.from({ length: most }, (_, i) => wanting.flatMap((own) => own[i] ?? [])).flat();
}

/** The delivery of an event to a registration: the same each time the stream repeats the event. */
export function deliveryFor(event: KeptEvent, registration: Wanting, timeScale: number): StoredDelivery {
  const { companyId, webhookId, id: registrationId, delayMinutes } = registration;
  const { id: eventId, createdAt, data } = event;
  const id = deliveryId(eventId, registrationId, createdAt);
  const about = { id, companyId, webhookId, registrationId, event: event.event, eventId, createdAt };
  const dueMs = Date.parse(createdAt) + delayMs(delayMinutes, timeScale);
  const occasion = { ...about, dueMs, trigger: "automatic", triggeredBy: null } as const;
  return data.text === undefined ? sharingDelivery(occasion) : newDelivery(occasion, data.text);
}
