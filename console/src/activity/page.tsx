/**
 * The page with the report on what users have done: charts of each day, of each user and of each status, with tables of the same numbers.
 */
import { useQuery } from "@tanstack/react-query";
import type { ActivityGroup, ActivityReport } from "canvassing-client/api";
import type { ReactNode } from "react";
import { useSearchParams } from "wouter";
import { answer, api } from "../api/client.ts";
import { nameOf } from "../api/reference.ts";
import { Dot } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Select } from "../ui/field.tsx";
import { Page, Panel } from "../ui/page.tsx";
import { Answer } from "../ui/states.tsx";
import { numberText } from "../ui/text.ts";
import style from "./activity.module.css";
import { DayChart } from "./day-chart.tsx";
import { ActivityTable } from "./table.tsx";

const DAY_MS = 86_400_000;
const LONGEST = 365;
const spans = [7, 30, 90, LONGEST] as const;
const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone;

type GroupBy = ActivityReport["groupBy"];

/** Returns the date in the user's time zone, for example `2026-11-23`. */
const dateOf = (time: number): string => new Intl.DateTimeFormat("en-CA", { timeZone: timezone }).format(time);

function rangeOf(days: number): { from: string; to: string } {
  const now = Date.now();
  return { from: dateOf(now - (days - 1) * DAY_MS), to: dateOf(now) };
}

function useReport(days: number, groupBy: GroupBy) {
  const { from, to } = rangeOf(days);
  return useQuery({
    queryKey: ["activity", from, to, groupBy],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/reports/activity", { params: { query: { from, to, groupBy, timezone } }, signal })),
  });
}

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
        <Select aria-label="Time span" value={days} onChange={({ target }) => show(target.value)}>
          {spans.map((span) => (
            <option key={span} value={span}>
              Last {span} days
            </option>
          ))}
        </Select>
      }
    >
      <Answer query={byDay} what="the activity">
        {({ totals, items }) => (
          <>
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
              <DayChart {...rangeOf(days)} groups={items} />
              <details>
                <summary>As a table</summary>
                <ActivityTable label="Activity by day" head="Day" groups={items} nameOf={({ day = "" }) => day} />
              </details>
            </Panel>
          </>
        )}
      </Answer>
      <ByUser days={days} />
      <ByStatus days={days} />
    </Page>
  );
}

function Total({ name, children }: { name: string; children: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{numberText(children)}</dd>
    </div>
  );
}

const userOf = ({ user }: ActivityGroup): string => (user ? nameOf(user) : "Nobody");

function ByUser({ days }: { days: number }) {
  const query = useReport(days, "user");
  return (
    <Panel title="By user">
      <Answer query={query} what="the activity of users">
        {({ items }) => <ActivityTable label="Activity by user" head="User" groups={items} nameOf={userOf} />}
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
          const most = Math.max(1, ...counted.map(({ statusChanges }) => statusChanges));
          if (counted.length === 0) return <p>No status was changed in this time span.</p>;
          return (
            <ul className={style.bars}>
              {counted.map(({ status, statusChanges }) => (
                <Bar
                  key={status?.id ?? 0}
                  label={status?.value ?? "No status"}
                  color={status?.color ?? "#9CA3AF"}
                  count={statusChanges}
                  most={most}
                />
              ))}
            </ul>
          );
        }}
      </Answer>
    </Panel>
  );
}

function Bar({ label, color, count, most }: { label: ReactNode; color: string; count: number; most: number }) {
  return (
    <li>
      <span className={style.label}>
        <Dot color={color} /> {label}
      </span>
      <svg className={style.bar} viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
        <rect width={(100 * count) / most} height="10" rx="1" fill={color} />
      </svg>
      <span className={style.count}>{numberText(count)}</span>
    </li>
  );
}
