/** The type of a budget, which limits the cost of an operation. docs/benchmarks.md lists all budgets with their measurements. */

export interface Budget {
  readonly number: number;
  readonly text: string;
  /** The number of prospects of the measured company, for example `100 k`. The text is empty if the measurement needs no company. */
  readonly size: string;
  /** Null if no limit applies to a company of this size. The report then shows only the measured value. */
  readonly limit: number | null;
  readonly measured: number;
}

/**
 * Returns true if the measured value does not exceed the limit. The value is first rounded to two decimals, as in the report. Otherwise the
 * report could show a value as equal to the limit and still call it a failure.
 */
export const isHeld = ({ limit, measured }: Budget): boolean => limit === null || Number(inDigits(measured)) <= limit;

export const inDigits = (value: number): string => String(Number(value.toFixed(2)));

export function sizeOf(count: number): string {
  if (count >= 1_000_000) return `${count / 1_000_000} M`;
  return count >= 1_000 ? `${count / 1_000} k` : String(count);
}
