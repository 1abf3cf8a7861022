/**
 * Reads the last events of one type, for the preview of a filter. The API has no list of events, so they come from the delivery logs of the
 * company's webhooks. A log contains only the events that a registration has matched.
 */
import { useQuery } from "@tanstack/react-query";
import type { Webhook } from "canvassing-client/api";
import { answer, api } from "../api/client.ts";

/** Maximum number of events that a preview compares. Each one needs a request for its body. */
export const PREVIEWED_EVENTS = 20;
/** Maximum number of webhooks whose logs are read. */
const PREVIEWED_WEBHOOKS = 8;

/** Events stay the same, so that a filter can be edited for a while without further requests. */
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
  // One event has a delivery for each registration that it matches.
  const events = new Map(bodies.flatMap(eventsIn).map((one) => [one.key, one]));
  return [...events.values()].sort((a, b) => b.createdAt.localeCompare(a.createdAt)).slice(0, PREVIEWED_EVENTS);
}

/** Returns the webhooks whose logs show most: those that get every event of the type, then this one, then those with a filter. */
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

/** Returns the events of a body. A registration with a delay collects several events in one body. */
function eventsIn(body: string): LastEvent[] {
  const parsed: { createdAt: string; data: unknown; events?: { createdAt: string; data: unknown }[] } =
    JSON.parse(body);
  return (parsed.events ?? [parsed]).map(({ createdAt, data }) => ({
    key: `${createdAt} ${JSON.stringify(data)}`,
    createdAt,
    data,
  }));
}
