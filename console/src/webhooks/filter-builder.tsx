/** Edits the conditions of a filter, and shows which of the last events would meet them. */

import { useQuery } from "@tanstack/react-query";
import type { Webhook } from "canvassing-client/api";
import { useId, useMemo } from "react";
import { matchesFilter } from "../../../shared/webhooks/subscriptions/filter-match.ts";
import { answer, api } from "../api/client.ts";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Field, Input, Select } from "../ui/field.tsx";
import { amount } from "../ui/text.ts";
import { Time } from "../ui/time.tsx";
import { type Built, type Condition, operatorNames, operators, pathsIn } from "./conditions.ts";
import { useEventTypes } from "./queries.ts";
import style from "./webhooks.module.css";

interface BuilderProps {
  readonly event: string;
  readonly conditions: readonly Condition[];
  readonly onChange: (conditions: readonly Condition[]) => void;
  readonly built: Built;
}

const placeholders = { text: "Sold", texts: "Sold, Interested", number: "133", numbers: "133, 134" } as const;

export function FilterBuilder({ event, conditions, onChange, built: { filter } }: BuilderProps) {
  const types = useEventTypes().data;
  const paths = useMemo(() => pathsIn(types?.find((type) => type.event === event)?.schema ?? {}), [types, event]);
  const listId = useId();
  const change = (index: number, changes: Partial<Condition>) =>
    onChange(conditions.map((one, i) => (i === index ? { ...one, ...changes } : one)));
  return (
    <>
      <datalist id={listId}>
        {paths.map((path) => (
          <option key={path} value={path} />
        ))}
      </datalist>
      {conditions.map(({ path, operator, typed }, index) => {
        const { takes } = operators[operator];
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: conditions have no identity of their own
          <div className={style.row} key={index}>
            <Field label="Field">
              <Input
                value={path}
                list={listId}
                placeholder="newStatus.value"
                onChange={({ target }) => change(index, { path: target.value })}
              />
            </Field>
            <Field label="Operator">
              <Select
                value={operator}
                options={operatorNames.map((name) => [name, operators[name].label])}
                onChange={({ target }) =>
                  change(index, { operator: operatorNames.find((name) => name === target.value) ?? "is" })
                }
              />
            </Field>
            {takes === undefined ? (
              <span />
            ) : (
              <Field label="Value">
                <Input
                  value={typed}
                  placeholder={placeholders[takes]}
                  inputMode={takes === "number" ? "decimal" : "text"}
                  onChange={({ target }) => change(index, { typed: target.value })}
                />
              </Field>
            )}
            <Button
              kind="quiet"
              aria-label={`Remove condition ${index + 1}`}
              onClick={() => onChange(conditions.filter((_, i) => i !== index))}
            >
              Remove
            </Button>
          </div>
        );
      })}
      <div className="row">
        <Button onClick={() => onChange([...conditions, { path: "", operator: "is", typed: "" }])}>
          Add a condition
        </Button>
        {filter !== null && <code className="broken">{JSON.stringify(filter)}</code>}
      </div>
    </>
  );
}

interface PreviewProps {
  readonly webhookId: number;
  readonly event: string;
  readonly filter: Built["filter"];
}

export function FilterPreview({ webhookId, event, filter }: PreviewProps) {
  const { data: events, error } = useLastEvents(webhookId, event);
  return (
    <section className="stack tight" aria-label="Preview">
      <p role="status">{error === null ? summaryOf(events, event, filter) : error.message}</p>
      {events !== undefined && events.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls a long list
        <ul className="list box scrolls" aria-label="Last events" tabIndex={0}>
          {events.map(({ key, createdAt, data }) => {
            const isMatch = matchesFilter(filter, data);
            return (
              <li key={key} data-match={isMatch}>
                <Badge kind={isMatch ? "good" : "plain"}>{isMatch ? "matches" : "no match"}</Badge>{" "}
                <Time iso={createdAt} /> <code className="broken">{shortened(data)}</code>
              </li>
            );
          })}
        </ul>
      )}
      <small>
        The preview compares at most {PREVIEWED_EVENTS} events of this type from the delivery logs of the last 30 days.
        A log has only events for which a webhook was registered.
      </small>
    </section>
  );
}

function summaryOf(events: readonly LastEvent[] | undefined, event: string, filter: Built["filter"]): string {
  if (events === undefined) return "Loading the last events …";
  if (events.length === 0) return `No delivery log has an event ${event}, so there is nothing to compare yet.`;
  const count = events.filter(({ data }) => matchesFilter(filter, data)).length;
  return `${count} of the last ${amount(events.length, "event")} would match.`;
}

const SHOWN_CHARACTERS = 160;

/**
 * Returns the data of an event as a short text. The text contains the name of the prospect instead of the whole prospect, which would leave
 * no space for the values that have changed.
 */
function shortened(data: unknown): string {
  const { prospect, ...others }: { prospect?: { name?: unknown } } =
    typeof data === "object" && data !== null ? data : {};
  const text = JSON.stringify({ ...(prospect !== undefined && { prospect: prospect.name }), ...others });
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

/** Maximum number of events that the preview compares with the filter. Loading an event needs a request for the body of its delivery. */
const PREVIEWED_EVENTS = 20;
/** Maximum number of webhooks whose delivery logs are read for the preview. */
const PREVIEWED_WEBHOOKS = 8;

/** If the preview is opened again within one minute, the page uses the events in the cache and sends no requests. */
const STALE_AFTER_MS = 60_000;

interface LastEvent {
  readonly key: string;
  readonly createdAt: string;
  readonly data: unknown;
}

/**
 * Reads the last events of one type. The API has no list of events, so they come from the delivery logs of the company's webhooks. An event
 * that matched no registration is in no log and therefore not in the preview.
 */
const useLastEvents = (webhookId: number, event: string) =>
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
  // An event has a delivery for each registration that it has matched. The map contains each event only once.
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
