/** The columns and axes of the charts. */
import type { ReactNode } from "react";
import { numberText } from "../ui/text.ts";
import style from "./activity.module.css";
import { dayText, type Range } from "./queries.ts";

/**
 * Returns the number at the end of an axis for values up to `most`: 1, or `most` rounded up to an even number in which only the first digit
 * is not zero. For example, 3 becomes 4, and 37 becomes 40.
 */
export function topOf(most: number): number {
  if (most <= 1) return 1;
  const digit = 10 ** Math.floor(Math.log10(most));
  if (digit === 1) return Math.ceil(most / 2) * 2;
  return Math.ceil(most / digit) * digit;
}

/** The numbers at the left of a chart, from the end of the axis down to zero. */
export function NumberAxis({ top }: { top: number }) {
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
export function DateAxis({ days: { from, to } }: { days: Range }): ReactNode {
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

/** The columns of a chart. */
export function Columns({ columns, top, isHidden = false }: ColumnsProps) {
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
