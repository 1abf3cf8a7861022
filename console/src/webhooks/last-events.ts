/**
 * Reads the last events of one type, for the preview of a filter. The API has no list of events, so they come from the delivery logs of the
 * company's webhooks. An event that matched no registration is in no log and therefore not in the preview.
 */
import { useQuery } from "@tanstack/react-query";
import type { Webhook } from "canvassing-client/api";
import { answer, api } from "../api/client.ts";

/** Maximum number of events that the preview compares with the filter. Loading an event needs a request for the body of its delivery. */
export const PREVIEWED_EVENTS = 20;
/** Maximum number of webhooks whose logs are read. */
const PREVIEWED_WEBHOOKS = 8;

/** If the preview is opened again within one minute, the page uses the events in the cache and sends no requests. */
const STALE_AFTER_MS = 60_000;

export interface LastEvent {
  readonly key: string;
  readonly createdAt: string;
  readonly data: unknown;
}

export const useLastEvents = (webhookId: number, event: string) =>
  useQuery({
    queryKey: ["last-events", webhookId, event],
    queryFn: () => lastEvents(webhookId, event),
    staleTime: STALE_AFTER_MS,
  });

async function lastEvents(webhookId: number, event: string): Promise<readonly LastEvent[]> {
  const webhooks = await answer(api.GET("/api/webhooks"));
  const logs = await Promise.all(readFirst(webhooks, webhookId, event).map(({ id }) => deliveriesOf(id, event)));
  const newest = logs.flat().sort((a, b) => b.createdAt.localeCompare(a.createdAt));
  const bodies = await Promise.all(newest.slice(0, PREVIEWED_EVENTS).map(bodyOf));
  // An event has a delivery for each registration that it has matched. The map contains such an event only once.
  const events = new Map(bodies.flatMap(eventsIn).map((one) => [one.key, one]));
  return [...events.values()].sort((a, b) => b.createdAt.localeCompare(a.createdAt)).slice(0, PREVIEWED_EVENTS);
}

/**
 * Returns the webhooks whose logs are read: first webhooks that get every event of the type, then the webhook with the id `webhookId`, and
 * then webhooks that get only events that match a filter.
 */
function readFirst(webhooks: readonly Webhook[], webhookId: number, event: string): readonly Webhook[] {
  const rank = ({ id, registrations }: Webhook): number => {
    const own = registrations.filter((registration) => registration.event === event);
    if (own.some(({ filter }) => filter === null)) return 0;
    return id === webhookId ? 1 : 2;
  };
  return webhooks
    .filter(({ id, registrations }) => id === webhookId || registrations.some((one) => one.event === event))
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, PREVIEWED_WEBHOOKS);
}

async function deliveriesOf(id: number, event: string) {
  const query = { event, limit: PREVIEWED_EVENTS };
  const page = await answer(api.GET("/api/webhooks/{id}/deliveries", { params: { path: { id }, query } }));
  return page.items;
}

async function bodyOf({ webhookId, id }: { webhookId: number; id: string }): Promise<string> {
  const path = { id: webhookId, deliveryId: id };
  return (await answer(api.GET("/api/webhooks/{id}/deliveries/{deliveryId}", { params: { path } }))).body;
}

/** Returns the events of a delivery's body. If the registration has a delay, one body may contain several events. */
function eventsIn(body: string): LastEvent[] {
  const parsed: { createdAt: string; data: unknown; events?: { createdAt: string; data: unknown }[] } =
    JSON.parse(body);
  return (parsed.events ?? [parsed]).map(({ createdAt, data }) => ({
    key: `${createdAt} ${JSON.stringify(data)}`,
    createdAt,
    data,
  }));
}
