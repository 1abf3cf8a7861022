/** A bar for each group. Each bar has its number beside it, so screen readers do not need the bars. */
import type { ReactNode } from "react";
import { numberText } from "../ui/text.ts";
import style from "./activity.module.css";

interface BarData {
  readonly key: number;
  readonly label: ReactNode;
  readonly color: string;
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
            <rect width={(100 * count) / most} height="10" fill={color} />
          </svg>
          <span className={style.count}>{numberText(count)}</span>
        </li>
      ))}
    </ul>
  );
}
