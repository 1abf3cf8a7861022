/** A bar chart for a report on activity. Screen readers skip the bars, and read the number beside each bar. */
import type { ReactNode } from "react";
import { numberText } from "../ui/text.ts";
import style from "./activity.module.css";

interface BarData {
  readonly key: number;
  readonly label: ReactNode;
  /** The colour of the bar. If it is undefined, the bar has the same colour as all other charts. */
  readonly color?: string;
  readonly count: number;
}

export function Bars({ label, bars }: { label: string; bars: readonly BarData[] }) {
  const most = Math.max(1, ...bars.map(({ count }) => count));
  return (
    <ul className={style.bars} aria-label={label}>
      {bars.map(({ key, label: name, color, count }) => (
        <li key={key}>
          <span className={style.label}>{name}</span>
          <svg className={style.bar} viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
            <rect
              width={(100 * count) / most}
              height="10"
              {...(color === undefined ? { className: style.column } : { fill: color })}
            />
          </svg>
          <span className={style.count}>{numberText(count)}</span>
        </li>
      ))}
    </ul>
  );
}
