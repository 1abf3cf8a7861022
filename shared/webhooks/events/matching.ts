/** Finds the subscriptions (automatic registrations) that match an event. A warm function caches a company's subscriptions. */
import { cachePerTable } from "#shared/cache.ts";
import type { EventContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import * as limits from "#shared/limits.ts";
import type { DomainEvent } from "#shared/webhooks/catalogue.ts";
import type { EventData } from "#shared/webhooks/event-data.ts";
import { matchesFilter } from "#shared/webhooks/subscriptions/filter-match.ts";
import type { StoredRegistration } from "#shared/webhooks/subscriptions/schema.ts";
import {
  filterOf,
  readWebhooksAtVersion,
  registrationsVersionOf,
  type WebhookRows,
} from "#shared/webhooks/subscriptions/webhooks.ts";

export type Subscriber = Pick<StoredRegistration, "companyId" | "webhookId" | "id" | "delayMinutes" | "delayChangedAt">;

export type Subscription = Subscriber & Pick<StoredRegistration, "filter">;

/** Maps the name of an event to its subscriptions, with one list for each webhook. */
export type Subscriptions = ReadonlyMap<string, readonly (readonly Subscription[])[]>;

export interface PublishedEvent extends Omit<DomainEvent, "data" | "event"> {
  readonly event: string;
  readonly data: EventData;
}

export interface Match {
  readonly event: PublishedEvent;
  readonly subscriber: Subscriber;
}

/** Returns subscriptions, alternating between webhooks. Senders then serve several webhooks at once, because each has few slots. */
export function matchingSubscriptions(event: DomainEvent, subscriptions: Subscriptions): Subscription[] {
  const byWebhook = (subscriptions.get(event.event) ?? []).map((own) =>
    own.filter((subscription) => matchesFilter(filterOf(subscription), event.data)),
  );
  const longest = byWebhook.reduce((most, { length }) => Math.max(most, length), 0);
  return Array.from({ length: longest }, (_, i) => byWebhook.flatMap((own) => own[i] ?? [])).flat();
}

/** Leaves out manual registrations, because no event triggers them. */
export function subscriptionsOf(webhooks: readonly WebhookRows[]): Subscriptions {
  const byEvent = new Map<string, Subscription[][]>();
  for (const { registrations } of webhooks) {
    const automatic = registrations.filter(({ triggerMode }) => triggerMode === "automatic");
    for (const [event, own] of Map.groupBy(automatic, (registration) => registration.event)) {
      byEvent.set(event, [...(byEvent.get(event) ?? []), own.map(subscriptionOf)]);
    }
  }
  return byEvent;
}

const subscriptionOf = (registration: StoredRegistration): Subscription => {
  const { companyId, webhookId, id, delayMinutes, delayChangedAt, filter } = registration;
  return { companyId, webhookId, id, delayMinutes, ...(delayChangedAt !== undefined && { delayChangedAt }), filter };
};

interface Cached {
  readonly readAt: number;
  readonly subscriptions: Subscriptions;
}

/** Maximum bytes of the cache. A company with the most registrations takes 73 MB of it with the largest filters, 0.6 MB without filters. */
const CACHED_BYTES = 128 * 2 ** 20;

const caches = cachePerTable<Cached>({
  maxBytes: CACHED_BYTES,
  bytesOf: ({ subscriptions }) => bytesOf(subscriptions),
});

/**
 * Returns a company's subscriptions, from the cache if the version of its registrations is unchanged and the entry is younger than
 * `limits.subscriptionsCacheMs`. Call it after the event has arrived: the result then has every registration older than the event.
 */
export async function currentSubscriptions(
  { table, clock }: Pick<EventContext, "table" | "clock">,
  companyId: number,
): Promise<Subscriptions> {
  const cache = caches(table);
  const readAt = clock.now();
  const cached = cache.get(companyId);
  if (cached !== undefined && readAt - cached.value.readAt < limits.subscriptionsCacheMs) {
    const { number } = registrationsVersionOf(await table.get(keys.webhookCount(companyId)));
    if (number === cached.version) return cached.value.subscriptions;
  }
  // The version is read before the subscriptions, so they are at least as new.
  const { version, webhooks } = await readWebhooksAtVersion(table, companyId);
  const subscriptions = subscriptionsOf(webhooks);
  // A Query during a transaction may return a mixture of old and new rows. Shortly after a change, the result is therefore not cached.
  const isSettled = readAt - version.changedAt >= limits.subscriptionsSettleMs;
  if (isSettled) cache.set(companyId, version.number, { readAt, subscriptions });
  else cache.delete(companyId);
  return subscriptions;
}

const ENTRY_BYTES = 400;
const SUBSCRIPTION_BYTES = 300;
/** Bytes in memory for each character of a filter (1 for the text, up to 6 for the parsed lists) and for each key. */
const FILTER_BYTES = 7;
const FILTER_KEY_BYTES = 150;

export function bytesOf(subscriptions: Subscriptions): number {
  let bytes = ENTRY_BYTES;
  for (const lists of subscriptions.values()) {
    bytes += ENTRY_BYTES;
    for (const { filter } of lists.flat()) {
      bytes += SUBSCRIPTION_BYTES;
      if (filter === null) continue;
      const keyCount = Math.min(limits.filterKeys, filter.split('":').length);
      bytes += FILTER_BYTES * filter.length + FILTER_KEY_BYTES * keyCount;
    }
  }
  return bytes;
}
