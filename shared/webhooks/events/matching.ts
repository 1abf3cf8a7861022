/** Finds the subscriptions that want an event. A warm function caches a company's subscriptions while their version in the table is the same. */
import type { EventContext } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { limits } from "#shared/limits.ts";
import type { EventData } from "#shared/webhooks/event-data.ts";
import type { DomainEvent } from "#shared/webhooks/events/catalogue.ts";
import { matchesFilter } from "#shared/webhooks/subscriptions/filter.ts";
import type { StoredRegistration } from "#shared/webhooks/subscriptions/schema.ts";
import {
  filterOf,
  readWebhooksAtVersion,
  registrationsVersionOf,
  type WebhookRows,
} from "#shared/webhooks/subscriptions/webhooks.ts";

/** The part of an automatic registration that a delivery needs. */
export type Subscriber = Pick<StoredRegistration, "companyId" | "webhookId" | "id" | "delayMinutes" | "delayChangedAt">;

/** The part of an automatic registration that the publisher needs. */
export type Subscription = Subscriber & Pick<StoredRegistration, "filter">;

/** Event name -> its subscriptions, one list for each webhook, in the order of `readWebhooks`. */
export type Subscriptions = ReadonlyMap<string, readonly (readonly Subscription[])[]>;

/** An event whose data is at hand as text or has a row of its own. */
export interface PublishedEvent extends Omit<DomainEvent, "data" | "event"> {
  readonly event: string;
  readonly data: EventData;
}

/** An event and a registration that wants it. */
export interface Match {
  readonly event: PublishedEvent;
  readonly subscriber: Subscriber;
}

/**
 * The subscriptions to this event whose filter its data meets. Neighbours in the list belong to different webhooks, so senders that take
 * them one after the other do not reach the limit of one receiver.
 */
export function matchingSubscriptions(event: DomainEvent, subscriptions: Subscriptions): Subscription[] {
  const byWebhook = (subscriptions.get(event.event) ?? []).map((own) =>
    own.filter((subscription) => matchesFilter(filterOf(subscription), event.data)),
  );
  const longest = byWebhook.reduce((most, { length }) => Math.max(most, length), 0);
  return Array.from({ length: longest }, (_, i) => byWebhook.flatMap((own) => own[i] ?? [])).flat();
}

/** Leaves out manual registrations: no event triggers them. */
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

/** A company with the most and largest filters takes 73 MB, one with as many registrations and no filters 0.6 MB. */
const CACHED_BYTES = 128 * 2 ** 20;

const caches = new WeakMap<Table, SubscriptionsCache>();

/**
 * The subscriptions in the table at this moment. One read of a small row shows whether the cached ones are current. A caller that has
 * received an event finds each registration that was created before the event. A failed read is not cached.
 */
export async function currentSubscriptions(
  { table, clock }: Pick<EventContext, "table" | "clock">,
  companyId: number,
): Promise<Subscriptions> {
  const cache = caches.get(table) ?? new SubscriptionsCache(CACHED_BYTES);
  caches.set(table, cache);
  const readAt = clock.now();
  const cached = cache.get(companyId);
  if (cached !== undefined && readAt - cached.readAt < limits.subscriptionsCacheMs) {
    const { number } = registrationsVersionOf(await table.get(keys.webhookCount(companyId)));
    if (number === cached.version) return cached.subscriptions;
  }
  const { version, webhooks } = await readWebhooksAtVersion(table, companyId);
  const subscriptions = subscriptionsOf(webhooks);
  // A Query during a transaction may find one row changed and another not yet: DynamoDB isolates the two only row by row.
  const isSettled = readAt - version.changedAt >= limits.subscriptionsSettleMs;
  if (isSettled) cache.set(companyId, { version: version.number, readAt, subscriptions });
  else cache.delete(companyId);
  return subscriptions;
}

export interface CachedSubscriptions {
  /** Read no later than the subscriptions. */
  readonly version: number;
  /** Time of the read, milliseconds since the epoch. */
  readonly readAt: number;
  readonly subscriptions: Subscriptions;
}

/** Evicts the least recently used companies first. The newest entry stays, whatever its size. */
export class SubscriptionsCache {
  readonly #maxBytes: number;
  readonly #entries = new Map<number, { readonly cached: CachedSubscriptions; readonly bytes: number }>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** An upper estimate. */
  get bytes(): number {
    return this.#bytes;
  }

  get(companyId: number): CachedSubscriptions | undefined {
    const entry = this.#entries.get(companyId);
    if (entry === undefined) return undefined;
    this.#entries.delete(companyId);
    this.#entries.set(companyId, entry);
    return entry.cached;
  }

  set(companyId: number, cached: CachedSubscriptions): void {
    this.delete(companyId);
    const bytes = bytesOf(cached.subscriptions);
    this.#entries.set(companyId, { cached, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#maxBytes || oldest === companyId) break;
      this.delete(oldest);
    }
  }

  delete(companyId: number): void {
    this.#bytes -= this.#entries.get(companyId)?.bytes ?? 0;
    this.#entries.delete(companyId);
  }
}

const ENTRY_BYTES = 400;
const SUBSCRIPTION_BYTES = 300;
/** A filter is cached as text and parsed. Parsed, lists take up to 6 bytes for each character, and a key takes up to 150. */
const FILTER_BYTES = 7;
const FILTER_KEY_BYTES = 150;

function bytesOf(subscriptions: Subscriptions): number {
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
