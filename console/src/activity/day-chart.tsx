/** A bar chart of the status changes on each day. Screen readers skip the bars, because the table below the chart has the same numbers. */
import type { ActivityGroup } from "canvassing-client/api";
import { numberText } from "../ui/text.ts";
import style from "./activity.module.css";

export const BAR_COLOR = "#0f766e";
const HEIGHT = 120;
const GAP = 0.2;
const DAY_MS = 86_400_000;

interface ChartProps {
  /** `from` and `to` are dates such as `2026-11-23`. The chart includes both days. */
  readonly from: string;
  readonly to: string;
  readonly groups: readonly ActivityGroup[];
}

export function DayChart({ from, to, groups }: ChartProps) {
  const counts = new Map(groups.map(({ day, statusChanges }) => [day, statusChanges]));
  const most = Math.max(1, ...counts.values());
  const days = daysBetween(from, to);
  return (
    <figure className={style.chart}>
      <svg aria-hidden="true" viewBox={`0 0 ${days.length} ${HEIGHT}`} preserveAspectRatio="none">
        {days.map((day, index) => {
          const count = counts.get(day) ?? 0;
          const height = (HEIGHT * count) / most;
          return (
            <rect key={day} x={index + GAP / 2} y={HEIGHT - height} width={1 - GAP} height={height} fill={BAR_COLOR}>
              <title>{`${day}: ${count}`}</title>
            </rect>
          );
        })}
      </svg>
      <figcaption>
        <span>{from}</span>
        <span>at most {numberText(most)} a day</span>
        <span>{to}</span>
      </figcaption>
    </figure>
  );
}

function daysBetween(from: string, to: string): string[] {
  const start = Date.parse(from);
  const count = Math.round((Date.parse(to) - start) / DAY_MS) + 1;
  return Array.from({ length: count }, (_, index) => new Date(start + index * DAY_MS).toISOString().slice(0, 10));
}
