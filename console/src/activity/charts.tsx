/** The charts of status changes: one with a column for each day, and a small one for each user. All charts of users have the same scale. */
import type { ActivityGroup, ActivityReport } from "canvassing-client/api";
import { type ReactNode, useMemo } from "react";
import { nameOf } from "../api/reference.ts";
import { Panel } from "../ui/page.tsx";
import { Answer } from "../ui/states.tsx";
import { amount, numberText } from "../ui/text.ts";
import style from "./activity.module.css";
import { daysOf, dayText, periodDays, periodsOf, type Range, useReports } from "./queries.ts";

export function DayChart({ days, groups }: { days: Range; groups: readonly ActivityGroup[] }) {
  const counts = new Map(groups.map(({ day, statusChanges }) => [day, statusChanges]));
  const top = topOf(Math.max(0, ...counts.values()));
  return (
    <figure className={style.chart}>
      <NumberAxis top={top} />
      <div className={style.plot}>
        <Columns
          top={top}
          isHidden
          columns={daysOf(days).map((day) => {
            const count = counts.get(day) ?? 0;
            return { key: day, count, text: `${dayText(day)}: ${amount(count, "status change")}` };
          })}
        />
      </div>
      <DateAxis days={days} />
    </figure>
  );
}

/** Maximum number of users with a chart of their own. All other users share one chart. */
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

/** Returns a `Line` for each of the `MOST_USERS` users with the most status changes, and a last one for all other users together. */
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

/**
 * Returns the number at the end of an axis for values up to `most`: 1, or `most` rounded up to an even number in which only the first digit
 * is not zero. For example, 3 becomes 4, and 37 becomes 40.
 */
function topOf(most: number): number {
  if (most <= 1) return 1;
  const digit = 10 ** Math.floor(Math.log10(most));
  if (digit === 1) return Math.ceil(most / 2) * 2;
  return Math.ceil(most / digit) * digit;
}

/** The numbers at the left of a chart, from the end of the axis down to zero. */
function NumberAxis({ top }: { top: number }) {
  const numbers = top === 1 ? [1, 0] : [top, top / 2, 0];
  return (
    <div className={style.numbers} aria-hidden="true">
      {numbers.map((number) => (
        <span key={number}>{numberText(number)}</span>
      ))}
    </div>
  );
}

/** Shows the first and the last date below a chart. */
function DateAxis({ days: { from, to } }: { days: Range }): ReactNode {
  return (
    <div className={style.dates}>
      <span>{dayText(from)}</span>
      <span>{dayText(to)}</span>
    </div>
  );
}

interface ColumnsProps {
  /** Each column has a key, and a text that the browser shows when the pointer is over it. */
  readonly columns: readonly { readonly key: string; readonly text: string; readonly count: number }[];
  readonly top: number;
  /** True if a table has the same numbers, so that screen readers skip the chart. */
  readonly isHidden?: boolean;
}

const GAP = 0.2;

function Columns({ columns, top, isHidden = false }: ColumnsProps) {
  const texts = columns.map(({ text }) => text).join(", ");
  const box = `0 0 ${columns.length} 1`;
  return (
    <svg role="img" aria-label={texts} aria-hidden={isHidden} viewBox={box} preserveAspectRatio="none">
      {columns.map(({ key, text, count }, index) => (
        <rect
          key={key}
          className={style.column}
          x={index + GAP / 2}
          y={1 - count / top}
          width={1 - GAP}
          height={count / top}
        >
          <title>{text}</title>
        </rect>
      ))}
    </svg>
  );
}
