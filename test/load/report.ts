/** Summarizes the answers of each phase of a load test, and decides whether the load test has passed. */
import { operations } from "./arrivals.ts";
import type { Settled } from "./recorder.ts";
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
  const [sent, ok, throttled] = [samples.length, times.length, samples.filter(isThrottled).length];
  const [p50, p90, p99] = [percentile(times, 0.5), percentile(times, 0.9), percentile(times, 0.99)];
  return { operation, sent, ok, throttled, errors: sent - ok - throttled, p50, p90, p99 };
}

export const rowsOf = (samples: readonly Sample[]): Row[] => {
  const byOperation = Map.groupBy(samples, ({ operation }) => operation);
  return [...operations.map((name) => rowOf(name, byOperation.get(name) ?? [])), rowOf("all", samples)];
};

/** Returns the percentile of the times that `share` names, for example 0.99, or 0 for an empty list. */
export function percentile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
}

/** Returns a text with the number of failed requests for each operation and status. */
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

export interface Summary {
  /** A row for each kind of request, and a last row for all requests together. */
  readonly rows: readonly Row[];
  /** The requests of companies that do not share a throttle with the large company, if the options are `--noisy` or `--beside`. */
  readonly others?: Row;
}

/**
 * Decides whether the load test has passed. `ratio` is the p99 latency of the other companies in the last phase, divided by that in the
 * first phase. `faults` are the reasons why the test has failed, for example `2 lost events`.
 *
 * @param maxRatio the largest `ratio` with which the load test passes. 0 accepts every ratio.
 */
export function verdictOf(
  phases: readonly Summary[],
  { lostWrites, lostEvents, doubledEvents }: Settled,
  maxRatio: number,
) {
  const counts = {
    "failed requests": phases.reduce((sum, { rows }) => sum + (rows.at(-1)?.errors ?? 0), 0),
    "lost writes": lostWrites,
    "lost events": lostEvents,
    "events that arrived twice": doubledEvents,
  };
  const faults = Object.entries(counts).flatMap(([name, count]) => (count === 0 ? [] : [`${count} ${name}`]));
  const [usual, beside] = [phases[0]?.others, phases.at(-1)?.others];
  const ratio =
    phases.length > 1 && usual && beside && usual.p99 > 0 ? Number((beside.p99 / usual.p99).toFixed(2)) : undefined;
  if (maxRatio > 0 && ratio !== undefined && ratio > maxRatio) {
    faults.push(`the p99 of the others was ${ratio} times as long, and at most ${maxRatio} times is allowed`);
  }
  return { holds: faults.length === 0, faults, ratio };
}
