/** A bar for each number, in the colour of its status. Screen readers skip the bars, and read the number beside each bar. */
import type { ReactNode } from "react";
import style from "./bars.module.css";
import { numberText, shareText } from "./text.ts";

interface Bar {
  readonly key: number;
  readonly label: ReactNode;
  readonly color?: string | undefined;
  readonly count: number;
}

interface BarsProps {
  readonly label: string;
  readonly bars: readonly Bar[];
  /** If `total` is set, each bar also shows its share of this number. */
  readonly total?: number;
}

export function Bars({ label, bars, total }: BarsProps) {
  const most = Math.max(1, ...bars.map(({ count }) => count));
  return (
    <ul className={`${style.bars} list`} aria-label={label}>
      {bars.map(({ key, label: name, color = "var(--accent)", count }) => (
        <li key={key}>
          <span>{name}</span>
          <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
            <rect width={(100 * count) / most} height="10" fill={color} />
          </svg>
          <span>{numberText(count)}</span>
          {total !== undefined && <span>{shareText(total === 0 ? 0 : count / total)}</span>}
        </li>
      ))}
    </ul>
  );
}
