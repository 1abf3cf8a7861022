/** The status changes of each user over time: a small chart for each user, all with the same scale, whose numbers screen readers read. */
import type { ActivityReport } from "canvassing-client/api";
import { useMemo } from "react";
import { nameOf } from "../api/reference.ts";
import { Panel } from "../ui/page.tsx";
import { Answer } from "../ui/states.tsx";
import { amount, numberText } from "../ui/text.ts";
import style from "./activity.module.css";
import { dayText, periodDays, periodsOf, type Range, useReports } from "./queries.ts";
import { Columns, DateAxis, topOf } from "./scale.tsx";

/** Maximum number of users that get a line of their own. All other users share one line. */
const MOST_USERS = 10;

interface Line {
  readonly id: number;
  readonly name: string;
  /** The number of status changes in each period. */
  readonly counts: readonly number[];
  readonly total: number;
}

export function UserChart({ days }: { days: number }) {
  const periods = useMemo(() => periodsOf(days), [days]);
  const query = useReports(periods);
  return (
    <Panel title="Status changes by user and day">
      <Answer query={query} what="the activity by user and day">
        {(reports) => <Lines periods={periods} length={periodDays(days)} lines={linesOf(reports)} />}
      </Answer>
    </Panel>
  );
}

/** Returns a line for each of the `MOST_USERS` users with the most status changes, and a last line for all others together. */
function linesOf(reports: readonly ActivityReport[]): Line[] {
  const users = new Map<number, { name: string; counts: number[] }>();
  for (const [period, { items }] of reports.entries()) {
    for (const { user, statusChanges } of items) {
      const id = user?.id ?? 0;
      const line = users.get(id) ?? { name: user ? nameOf(user) : "Nobody", counts: reports.map(() => 0) };
      users.set(id, line);
      line.counts[period] = statusChanges;
    }
  }
  const lines = [...users]
    .map(([id, line]) => ({ id, ...line, total: sum(line.counts) }))
    .filter(({ total }) => total > 0)
    .toSorted((a, b) => b.total - a.total || a.id - b.id);
  const others = lines.slice(MOST_USERS);
  if (others.length === 0) return lines;
  const counts = reports.map((_, period) => sum(others.map((line) => line.counts[period] ?? 0)));
  const name = amount(others.length, "other user");
  return [...lines.slice(0, MOST_USERS), { id: -1, name, counts, total: sum(counts) }];
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

const textOf = ({ from, to }: Range): string => [...new Set([from, to])].map(dayText).join(" to ");

interface LinesProps {
  readonly periods: readonly Range[];
  /** Number of days in each period. */
  readonly length: number;
  readonly lines: readonly Line[];
}

function Lines({ periods, length, lines }: LinesProps) {
  const [first, last] = [periods[0], periods.at(-1)];
  if (first === undefined || last === undefined || lines.length === 0)
    return <p>No status was changed in this time span.</p>;
  const top = topOf(Math.max(...lines.flatMap(({ counts }) => counts)));
  return (
    <>
      <p>
        Each column is {length === 1 ? "one day" : `${length} days`}. The grey line at the top of each chart is{" "}
        {amount(top, "status change")}. The number at the end is the sum.
      </p>
      <figure className={style.lineChart}>
        <ul className={`${style.lines} list`} aria-label="Status changes of each user">
          {lines.map(({ id, name, counts, total }) => (
            <li key={id}>
              <span>{name}</span>
              <div className={style.small}>
                <Columns
                  top={top}
                  columns={periods.map((period, index) => {
                    const count = counts[index] ?? 0;
                    return { key: period.from, count, text: `${textOf(period)}: ${numberText(count)}` };
                  })}
                />
              </div>
              <span className={style.count}>{numberText(total)}</span>
            </li>
          ))}
        </ul>
        <DateAxis days={{ from: first.from, to: last.to }} />
      </figure>
    </>
  );
}
