/** A column for the status changes of each day. The table below the chart has the same numbers. */
import type { ActivityGroup } from "canvassing-client/api";
import { amount } from "../ui/text.ts";
import style from "./activity.module.css";
import { daysOf, dayText, type Range } from "./queries.ts";
import { Columns, DateAxis, NumberAxis, topOf } from "./scale.tsx";

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
