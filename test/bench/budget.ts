/** The type of a budget, which limits the cost of an operation. docs/benchmarks.md lists all budgets with their measurements. */

export interface Budget {
  readonly number: number;
  readonly text: string;
  /** The number of prospects, for example `100 k`, or `100 k / 10 k` for two companies. Empty if the measurement needs no company. */
  readonly size: string;
  /** Null if the report only shows the measured value, for example a time, which depends on the machine and its load. */
  readonly limit: number | null;
  readonly measured: number;
}

export const budgetsOf =
  (size: string) =>
  (number: number, text: string, limit: number | null, measured: number): Budget => ({
    number,
    text,
    size,
    limit,
    measured,
  });

/**
 * Returns true if the measured value, with two decimals as in the report, is at most the limit. With more decimals, the report could show a
 * value that equals its limit as a failure.
 */
export const isHeld = ({ limit, measured }: Budget): boolean => limit === null || Number(inDigits(measured)) <= limit;

export const inDigits = (value: number): string => String(Number(value.toFixed(2)));

export function sizeOf(count: number): string {
  if (count >= 1_000_000) return `${count / 1_000_000} M`;
  return count >= 1_000 ? `${count / 1_000} k` : String(count);
}
