/** Summarizes the answers of one phase of a load test: counts and percentiles for each operation. */
import { operations } from "./arrivals.ts";
import type { Sample } from "./traffic.ts";

export interface Row {
  readonly operation: string;
  readonly sent: number;
  readonly ok: number;
  /** Number of requests that a throttle refused, with `Retry-After`. */
  readonly throttled: number;
  /** Number of all other failures: another status, no answer, or 429 without `Retry-After`. */
  readonly errors: number;
  /** Percentiles of the latencies of the successful requests (status 2xx), in milliseconds. */
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

const isOk = ({ status }: Sample): boolean => status >= 200 && status < 300;
const isThrottled = ({ status, hasRetryAfter }: Sample): boolean => status === 429 && hasRetryAfter;

export function rowOf(operation: string, samples: readonly Sample[]): Row {
  const times = samples.filter(isOk).map(({ ms }) => ms);
  const ok = times.length;
  const throttled = samples.filter(isThrottled).length;
  const errors = samples.length - ok - throttled;
  return {
    operation,
    sent: samples.length,
    ok,
    throttled,
    errors,
    p50: percentile(times, 0.5),
    p90: percentile(times, 0.9),
    p99: percentile(times, 0.99),
  };
}

export const rowsOf = (samples: readonly Sample[]): Row[] => [
  ...operations.map((operation) =>
    rowOf(
      operation,
      samples.filter((sample) => sample.operation === operation),
    ),
  ),
  rowOf("all", samples),
];

/** Returns a percentile of the times, or 0 for an empty list. */
export function percentile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
}

/** Returns a text with the number of failed requests for each operation and status, for the message of a failed load test. */
export function errorStatuses(samples: readonly Sample[]): string {
  const wrong = samples.filter((sample) => !isOk(sample) && !isThrottled(sample));
  const byStatus = Map.groupBy(wrong, ({ operation, status }) => `${operation} ${status === 0 ? "no answer" : status}`);
  return [...byStatus].map(([name, list]) => `${name}: ${list.length}`).join(", ");
}

export function show(title: string, rows: readonly Row[]): void {
  console.log(`\n${title}`);
  console.table(
    Object.fromEntries(rows.map(({ operation, throttled, ...row }) => [operation, { ...row, "429": throttled }])),
    ["sent", "ok", "429", "errors", "p50", "p90", "p99"],
  );
}
