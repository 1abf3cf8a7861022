/** The page with the report on what users have done: charts and tables, and how many prospects have each status now. */
import type { ActivityGroup } from "canvassing-client/api";
import { useMemo } from "react";
import { Link, useSearchParams } from "wouter";
import { nameOf } from "../api/reference.ts";
import { withFilter } from "../prospects/filter.ts";
import { NO_STATUS, StatusMark } from "../ui/badge.tsx";
import { Bars } from "../ui/bars.tsx";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Select } from "../ui/field.tsx";
import { Page, Panel } from "../ui/page.tsx";
import { Answer } from "../ui/states.tsx";
import { numberText, timeText } from "../ui/text.ts";
import style from "./activity.module.css";
import { DayChart, UserChart } from "./charts.tsx";
import { dayText, rangeOf, useReport, useStatusCounts } from "./queries.ts";

const LONGEST = 365;
const spans = [7, 30, 90, LONGEST] as const;

export function ActivityPage() {
  const [parameters, setParameters] = useSearchParams();
  const days = spans.find((span) => String(span) === parameters.get("days")) ?? 30;
  const byDay = useReport(days, "day");
  const show = (span: string): void => setParameters({ days: span }, { replace: true });
  return (
    <Page
      title="Activity"
      lead="What users have done at the doors."
      actions={
        <Select
          aria-label="Time span"
          value={days}
          options={spans.map((span) => [span, `Last ${span} days`])}
          onChange={({ target }) => show(target.value)}
        />
      }
    >
      <Answer query={byDay} what="the activity">
        {({ totals, items, countedSince, from }) => (
          <>
            {countedSince !== null && countedSince > from && (
              <p>Activity before {timeText(countedSince)} is not or only partly counted.</p>
            )}
            <dl className={style.totals}>
              <Total name="Status changes">{totals.statusChanges}</Total>
              <Total name="Notes">{totals.notes}</Total>
              <Total name="Appointments">{totals.appointments}</Total>
              <Total name="New prospects">{totals.creations}</Total>
            </dl>
            {days < LONGEST && Object.values(totals).every((count) => count === 0) && (
              <p>
                Nobody did anything in the last {days} days.{" "}
                <Button onClick={() => show(String(LONGEST))}>Show the last {LONGEST} days</Button>
              </p>
            )}
            <Panel title="Status changes by day">
              <DayChart days={rangeOf(days)} groups={items} />
              <details>
                <summary>As a table</summary>
                <ActivityTable
                  label="Activity by day"
                  head="Day"
                  groups={items}
                  nameOf={dayOf}
                  keyOf={({ day = "" }) => day}
                />
              </details>
            </Panel>
          </>
        )}
      </Answer>
      <UserChart days={days} />
      <ByGroup days={days} by="user" />
      <Funnel />
      <ByStatus days={days} />
      <ByGroup days={days} by="territory" />
    </Page>
  );
}

function Total({ name, children }: { name: string; children: number }) {
  return (
    <div className="card">
      <dt>{name}</dt>
      <dd>{numberText(children)}</dd>
    </div>
  );
}

const dayOf = ({ day }: ActivityGroup): string => (day === undefined ? "" : dayText(day));

const groupings = {
  user: {
    head: "User",
    nameOf: ({ user }: ActivityGroup) => (user ? nameOf(user) : "Nobody"),
    keyOf: ({ user }: ActivityGroup) => user?.id ?? 0,
  },
  territory: {
    head: "Territory",
    nameOf: ({ territory }: ActivityGroup) => territory?.name ?? "Outside all territories",
    keyOf: ({ territory }: ActivityGroup) => territory?.id ?? 0,
  },
} as const;

function ByGroup({ days, by }: { days: number; by: keyof typeof groupings }) {
  const query = useReport(days, by);
  return (
    <Panel title={`By ${by}`}>
      {by === "territory" && <p>Activity counts for each territory in which the prospect is now.</p>}
      <Answer query={query} what={`the activity by ${by}`}>
        {({ items }) => <ActivityTable label={`Activity by ${by}`} groups={items} {...groupings[by]} />}
      </Answer>
    </Panel>
  );
}

function ByStatus({ days }: { days: number }) {
  const query = useReport(days, "status");
  return (
    <Panel title="Status changes by status">
      <Answer query={query} what="the activity of statuses">
        {({ items }) => {
          const counted = items.filter(({ statusChanges }) => statusChanges > 0);
          if (counted.length === 0) return <p>No status was changed in this time span.</p>;
          return (
            <Bars
              label="Status changes by status"
              total={counted.reduce((sum, { statusChanges }) => sum + statusChanges, 0)}
              bars={counted.map(({ status, statusChanges: count }) => ({
                key: status?.id ?? 0,
                label: <StatusMark status={status ?? null} />,
                color: status?.color ?? NO_STATUS,
                count,
              }))}
            />
          );
        }}
      </Answer>
    </Panel>
  );
}

interface TableProps {
  readonly label: string;
  readonly head: string;
  readonly groups: readonly ActivityGroup[];
  readonly nameOf: (group: ActivityGroup) => string;
  /** Returns the React key of a group. The name cannot be the key, because several users or territories may have the same name. */
  readonly keyOf: (group: ActivityGroup) => string | number;
}

const counts: readonly Column<ActivityGroup>[] = [
  { id: "status", header: "Status changes", align: "right", cell: (group) => numberText(group.statusChanges) },
  { id: "notes", header: "Notes", align: "right", cell: (group) => numberText(group.notes) },
  { id: "appointments", header: "Appointments", align: "right", cell: (group) => numberText(group.appointments) },
  { id: "new", header: "New prospects", align: "right", minor: true, cell: (group) => numberText(group.creations) },
];

function ActivityTable({ label, head, groups, nameOf, keyOf }: TableProps) {
  const columns = useMemo(() => [{ id: "name", header: head, cell: nameOf }, ...counts], [head, nameOf]);
  const rows = useMemo(() => groups.map((group) => ({ ...group, id: keyOf(group) })), [groups, keyOf]);
  const empty = <p>Nothing has been done in this time span.</p>;
  return <DataTable label={label} columns={columns} rows={rows} empty={empty} />;
}

function Funnel() {
  const query = useStatusCounts();
  return (
    <Panel title="Prospects by status">
      <Answer query={query} what="the numbers of prospects">
        {({ total, statuses }) => {
          const counted = statuses.reduce((sum, { count }) => sum + count, 0);
          // `total` and the counts come from different requests. If a prospect changes between them, `counted` may exceed `total`.
          const rest = Math.max(0, total - counted);
          const bars = statuses.map((status) => ({
            key: status.id,
            label: (
              <Link href={withFilter("/prospects", { status: status.value })}>
                <StatusMark status={status} />
              </Link>
            ),
            color: status.color,
            count: status.count,
          }));
          const others = { key: 0, label: "No status, or another", color: NO_STATUS, count: rest };
          return <Bars label="Prospects by status" bars={rest > 0 ? [...bars, others] : bars} total={total} />;
        }}
      </Answer>
    </Panel>
  );
}
