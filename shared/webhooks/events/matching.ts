/**
 * Finds the subscriptions that match an event. A subscription is an automatic registration. A warm function caches a company's
 * subscriptions as long as their version in the table stays the same.
 */
import type { EventContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import * as limits from "#shared/limits.ts";
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

/** The part of an automatic registration from which a delivery is made. */
export type Subscriber = Pick<StoredRegistration, "companyId" | "webhookId" | "id" | "delayMinutes" | "delayChangedAt">;

/** The part of an automatic registration that matching needs. The cache holds only this part. */
export type Subscription = Subscriber & Pick<StoredRegistration, "filter">;

/** The subscriptions by event name, with one list for each webhook. */
export type Subscriptions = ReadonlyMap<string, readonly (readonly Subscription[])[]>;

/** An event whose data is either in memory as text or in a separate row. */
export interface PublishedEvent extends Omit<DomainEvent, "data" | "event"> {
  readonly event: string;
  readonly data: EventData;
}

export interface Match {
  readonly event: PublishedEvent;
  readonly subscriber: Subscriber;
}

/**
 * Returns the subscriptions whose filter the event meets. They alternate between webhooks, so that senders which process the list in order
 * do not reach the concurrency limit of one receiver.
 */
export function matchingSubscriptions(event: DomainEvent, subscriptions: Subscriptions): Subscription[] {
  const byWebhook = (subscriptions.get(event.event) ?? []).map((own) =>
    own.filter((subscription) => matchesFilter(filterOf(subscription), event.data)),
  );
  const longest = byWebhook.reduce((most, { length }) => Math.max(most, length), 0);
  return Array.from({ length: longest }, (_, i) => byWebhook.flatMap((own) => own[i] ?? [])).flat();
}

/** Returns the subscriptions of these webhooks. Manual registrations are left out, because no event triggers them. */
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

/**
 * The largest size of the cache of all companies, in bytes. If a company has the largest permitted number of registrations, they take 73
 * MB with the largest permitted filters and 0.6 MB without filters.
 */
const CACHED_BYTES = 128 * 2 ** 20;

const caches = new WeakMap<Table, SubscriptionsCache>();

/**
 * Returns the current subscriptions of a company. One small read shows whether the cached ones are current. Call this after an event has
 * arrived, so that the result has each registration that is older than the event.
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
  // Do not cache a read shortly after a change. A Query during a transaction may see one row before its change and another row after it,
  // because DynamoDB isolates only single rows, and the cache would keep this mixture.
  const isSettled = readAt - version.changedAt >= limits.subscriptionsSettleMs;
  if (isSettled) cache.set(companyId, { version: version.number, readAt, subscriptions });
  else cache.delete(companyId);
  return subscriptions;
}

export interface CachedSubscriptions {
  /** The version of the subscriptions. It was read first, so the subscriptions are at least as new. */
  readonly version: number;
  /** The time of the read, in milliseconds since 1970. */
  readonly readAt: number;
  readonly subscriptions: Subscriptions;
}

/** A cache that evicts the least recently used company first. The newest entry is always kept, even if it is larger than the cache. */
export class SubscriptionsCache {
  readonly #maxBytes: number;
  readonly #entries = new Map<number, { readonly cached: CachedSubscriptions; readonly bytes: number }>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** An upper bound for the memory of the cached subscriptions. */
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
/**
 * The memory of a cached filter is 7 bytes for each character of its text (1 for the text, up to 6 for parsed lists) and `FILTER_KEY_BYTES`
 * for each key.
 */
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
