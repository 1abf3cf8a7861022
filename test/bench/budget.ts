/** A budget of the design, and the measurement that it limits. */

export interface Budget {
  /** Number of the budget in the design. */
  readonly number: number;
  readonly text: string;
  /** Prospects of the company, as `100 k`. Empty without a company. */
  readonly size: string;
  /** Null if the design sets no limit for this size. */
  readonly limit: number | null;
  readonly measured: number;
}

/** Compares the printed value: later decimals are noise. */
export const isHeld = ({ limit, measured }: Budget): boolean => limit === null || Number(inDigits(measured)) <= limit;

/** At most two decimals. */
export const inDigits = (value: number): string => String(Number(value.toFixed(2)));

/** 10 000 -> `10 k`. */
export function sizeOf(count: number): string {
  if (count >= 1_000_000) return `${count / 1_000_000} M`;
  return count >= 1_000 ? `${count / 1_000} k` : String(count);
}
