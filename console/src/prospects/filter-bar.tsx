/** The filters above the map and the table: a search field, a button for each status, and further filters that the user can unfold. */
import type { Me } from "canvassing-client/api";
import { useEffect, useState } from "react";
import { isAdmin, nameOf, useStatuses, useTags, useTerritories, useUsers } from "../api/reference.ts";
import { Dot } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Field, Fields, Input, Select } from "../ui/field.tsx";
import { useIsNarrow } from "../ui/screen.ts";
import { type FilterState, filterNames, listOf, toggled } from "./filter.ts";
import style from "./filter-bar.module.css";

const further = ["assignedToUserId", "tagId", "territoryId", "city", "dateFrom", "dateTo"] as const;
const nothing = Object.fromEntries(filterNames.map((name) => [name, undefined]));

export function FilterBar({ me, state }: { me: Me; state: FilterState }) {
  const { filter, change } = state;
  const isNarrow = useIsNarrow();
  const [isUnfolded, setUnfolded] = useState(false);
  // On a phone, the statuses would take half of the screen, so the user unfolds them too.
  const folded = isNarrow ? (["status", ...further] as const) : further;
  const set = folded.filter((name) => filter[name] !== undefined).length;
  const isOpen = !isNarrow && set > 0;
  return (
    <search className={style.bar} aria-label="Filters">
      <div className={style.first}>
        <Search value={filter.search ?? ""} onChange={(search) => change({ search })} />
        {!isNarrow && <Statuses state={state} />}
      </div>
      <div className={style.second}>
        <details
          className={style.more}
          open={isOpen || undefined}
          onToggle={({ currentTarget }) => setUnfolded(currentTarget.open)}
        >
          <summary>
            {isNarrow ? "Filters" : "More filters"}
            {set > 0 && ` (${set})`}
          </summary>
          {isNarrow && <Statuses state={state} />}
          {/* The list of territories may be large, because it contains their polygons. It is loaded only if the user needs it. */}
          {(isOpen || isUnfolded) && <FurtherFilters me={me} state={state} />}
        </details>
        {Object.keys(filter).length > 0 && (
          <Button kind="quiet" onClick={() => change(nothing)}>
            Remove all filters
          </Button>
        )}
      </div>
    </search>
  );
}

function Statuses({ state: { filter, change } }: { state: FilterState }) {
  const statuses = useStatuses().data ?? [];
  return (
    <fieldset className={style.statuses}>
      <legend className="visually-hidden">Statuses</legend>
      {statuses
        .filter(({ isActive }) => isActive)
        .map(({ id, value, color }) => (
          <button
            key={id}
            type="button"
            aria-pressed={listOf(filter.status).includes(value)}
            onClick={() => change({ status: toggled(filter.status, value) })}
          >
            <Dot color={color} /> {value}
          </button>
        ))}
    </fieldset>
  );
}

const TYPING_PAUSE_MS = 250;

/** Calls `onChange` when the user stops typing, so that the page does not send a request for each letter. */
function Search({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a change of `text` starts the timer
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onChange(text), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div className={style.search}>
      <Input
        type="search"
        aria-label="Search prospects"
        placeholder="Name, phone, e-mail, address or note"
        maxLength={200}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
    </div>
  );
}

function FurtherFilters({ me, state: { filter, change } }: { me: Me; state: FilterState }) {
  const users = useUsers().data ?? [];
  const tags = useTags().data ?? [];
  const territories = useTerritories().data ?? [];
  return (
    <Fields>
      {isAdmin(me) && (
        <Field label="Assigned to">
          <Select
            value={filter.assignedToUserId ?? ""}
            onChange={({ target }) => change({ assignedToUserId: target.value })}
          >
            <option value="">Anyone</option>
            <option value="unassigned">Nobody</option>
            {users.map((user) => (
              <option key={user.id} value={user.id}>
                {nameOf(user)}
              </option>
            ))}
          </Select>
        </Field>
      )}
      <Field label="Tag">
        <Select value={filter.tagId ?? ""} onChange={({ target }) => change({ tagId: target.value })}>
          <option value="">Any</option>
          {tags.map(({ id, value }) => (
            <option key={id}>{value}</option>
          ))}
        </Select>
      </Field>
      <Field label="Territory">
        <Select value={filter.territoryId ?? ""} onChange={({ target }) => change({ territoryId: target.value })}>
          <option value="">Any</option>
          {territories.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </Select>
      </Field>
      <Field label="City">
        <Input
          key={filter.city}
          defaultValue={filter.city ?? ""}
          onBlur={({ target }) => change({ city: target.value })}
        />
      </Field>
      <Field label="Created from">
        <Input
          type="date"
          value={filter.dateFrom ?? ""}
          onChange={({ target }) => change({ dateFrom: target.value })}
        />
      </Field>
      <Field label="Created until">
        <Input type="date" value={filter.dateTo ?? ""} onChange={({ target }) => change({ dateTo: target.value })} />
      </Field>
    </Fields>
  );
}
