/** The shape of a budget, which limits the cost of an operation. docs/benchmarks.md lists all budgets with their measurements. */

export interface Budget {
  readonly number: number;
  readonly text: string;
  /** The number of prospects of the measured company, such as `100 k`. Empty if the measurement uses no company. */
  readonly size: string;
  /** Null if the budget has no limit for a company of this size. */
  readonly limit: number | null;
  readonly measured: number;
}

/**
 * Compares the value as the report prints it, which is rounded to two decimals. Otherwise the report could show a value that equals its
 * limit as a failure.
 */
export const isHeld = ({ limit, measured }: Budget): boolean => limit === null || Number(inDigits(measured)) <= limit;

export const inDigits = (value: number): string => String(Number(value.toFixed(2)));

/** Formats 10 000 as `10 k`. */
export function sizeOf(count: number): string {
  if (count >= 1_000_000) return `${count / 1_000_000} M`;
  return count >= 1_000 ? `${count / 1_000} k` : String(count);
}
