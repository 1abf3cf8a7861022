/** A budget limits the cost of an operation. docs/benchmarks.md lists all budgets with their measurements. */

export interface Budget {
  /** The number of the budget in docs/benchmarks.md. */
  readonly number: number;
  readonly text: string;
  /** The number of the company's prospects, such as `100 k`. Empty if no company is measured. */
  readonly size: string;
  /** Null if this size has no limit. */
  readonly limit: number | null;
  readonly measured: number;
}

/** Compares the value as it is printed, because further decimals are noise. */
export const isHeld = ({ limit, measured }: Budget): boolean => limit === null || Number(inDigits(measured)) <= limit;

/** Formats a value with at most two decimals. */
export const inDigits = (value: number): string => String(Number(value.toFixed(2)));

/** Formats 10 000 as `10 k`. */
export function sizeOf(count: number): string {
  if (count >= 1_000_000) return `${count / 1_000_000} M`;
  return count >= 1_000 ? `${count / 1_000} k` : String(count);
}
