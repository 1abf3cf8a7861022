/** The filters above the map and the table: a search field, and a button that opens a sheet with all other filters. */
import type { Me } from "canvassing-client/api";
import { type ComponentProps, type ReactNode, useEffect, useState } from "react";
import { isAdmin, nameOf, useStatuses, useTags, useTerritories, useUsers } from "../api/reference.ts";
import { Dot } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Field, Fields, Input, Select } from "../ui/field.tsx";
import { Icon } from "../ui/icon.tsx";
import { Modal } from "../ui/modal.tsx";
import { type FilterName, type FilterState, filterNames, listOf, toggled } from "./filter.ts";
import style from "./filter-bar.module.css";

const inSheet = filterNames.filter((name) => name !== "search");
const nothing = Object.fromEntries(filterNames.map((name) => [name, undefined]));

interface BarProps {
  readonly me: Me;
  readonly state: FilterState;
  readonly children?: ReactNode;
}

export function FilterBar({ me, state, children }: BarProps) {
  const { filter, change } = state;
  const [isOpen, setOpen] = useState(false);
  const set = inSheet.filter((name) => filter[name] !== undefined).length;
  return (
    <search className={`${style.bar} row`} aria-label="Filters">
      <div className={style.search}>
        <Typed
          type="search"
          aria-label="Search prospects"
          placeholder="Name, phone, e-mail, address or note"
          maxLength={200}
          value={filter.search ?? ""}
          onTyped={(search) => change({ search })}
        />
      </div>
      <Button aria-haspopup="dialog" onClick={() => setOpen(true)}>
        <Icon name="filter" size={16} /> Filters{set > 0 && ` (${set})`}
      </Button>
      {Object.keys(filter).length > 0 && (
        <Button kind="quiet" onClick={() => change(nothing)}>
          Remove all filters
        </Button>
      )}
      {children}
      {isOpen && (
        <Modal title="Filters" isAside onClose={() => setOpen(false)}>
          <div className="stack inside">
            <Statuses state={state} />
            <FurtherFilters me={me} state={state} />
          </div>
        </Modal>
      )}
    </search>
  );
}

function Statuses({ state: { filter, change } }: { state: FilterState }) {
  const statuses = useStatuses().data ?? [];
  return (
    <fieldset className={`${style.statuses} row`}>
      <legend className="visually-hidden">Statuses</legend>
      {statuses
        .filter(({ isActive }) => isActive)
        .map(({ id, value, color }) => (
          <Button
            key={id}
            aria-pressed={listOf(filter.status).includes(value)}
            onClick={() => change({ status: toggled(filter.status, value) })}
          >
            <Dot color={color} /> {value}
          </Button>
        ))}
    </fieldset>
  );
}

const TYPING_PAUSE_MS = 250;

interface TypedProps extends Omit<ComponentProps<typeof Input>, "value" | "onChange"> {
  readonly value: string;
  readonly onTyped: (value: string) => void;
}

/** Calls `onTyped` when the user stops typing, so that the page does not send a request for each letter. */
function Typed({ value, onTyped, ...props }: TypedProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a change of `text` starts the timer
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onTyped(text), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return <Input value={text} onChange={({ target }) => setText(target.value)} {...props} />;
}

function FurtherFilters({ me, state: { filter, change } }: { me: Me; state: FilterState }) {
  const users = useUsers().data ?? [];
  const tags = useTags().data ?? [];
  const territories = useTerritories().data ?? [];
  const control = (name: FilterName) => ({
    value: filter[name] ?? "",
    onChange: ({ target }: { target: { value: string } }) => change({ [name]: target.value }),
  });
  return (
    <Fields>
      {isAdmin(me) && (
        <Field label="Assigned to">
          <Select
            none="Anyone"
            options={[["unassigned", "Nobody"], ...users.map((user) => [user.id, nameOf(user)] as const)]}
            {...control("assignedToUserId")}
          />
        </Field>
      )}
      <Field label="Tag">
        <Select none="Any" options={tags.map(({ value }) => [value, value])} {...control("tagId")} />
      </Field>
      <Field label="Territory">
        <Select none="Any" options={territories.map(({ id, name }) => [id, name])} {...control("territoryId")} />
      </Field>
      <Field label="City">
        <Typed value={filter.city ?? ""} onTyped={(city) => change({ city })} />
      </Field>
      <Field label="Created from">
        <Input type="date" {...control("dateFrom")} />
      </Field>
      <Field label="Created until">
        <Input type="date" {...control("dateTo")} />
      </Field>
    </Fields>
  );
}
