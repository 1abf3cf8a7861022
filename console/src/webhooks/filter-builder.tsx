/** Edits the conditions of a filter, and shows which of the last events would meet them. */
import { useId, useMemo } from "react";
import { matchesFilter } from "../../../shared/webhooks/subscriptions/filter-match.ts";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Field, Input, Select } from "../ui/field.tsx";
import { amount } from "../ui/text.ts";
import { Time } from "../ui/time.tsx";
import { type Built, type Condition, operatorNames, operators, pathsIn } from "./conditions.ts";
import { type LastEvent, PREVIEWED_EVENTS, useLastEvents } from "./last-events.ts";
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
