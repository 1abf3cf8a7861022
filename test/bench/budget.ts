/** A budget of the design and what was measured against it. */

export interface Budget {
  /** As the design numbers them. */
  readonly number: number;
  readonly text: string;
  /** Prospects of the company: `100 k`. Empty where there is no company. */
  readonly size: string;
  /** The most that it may be; null where the design sets none for this size. */
  readonly limit: number | null;
  readonly measured: number;
}

/** As it is printed: what lies behind the second decimal is noise. */
export const isHeld = ({ limit, measured }: Budget): boolean => limit === null || Number(inDigits(measured)) <= limit;

/** At most two decimals. */
export const inDigits = (value: number): string => String(Number(value.toFixed(2)));

/** 10 000 -> `10 k`. */
export function sizeOf(count: number): string {
  if (count >= 1_000_000) return `${count / 1_000_000} M`;
  return count >= 1_000 ? `${count / 1_000} k` : String(count);
}
