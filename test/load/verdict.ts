/**
 * Decides whether a load test has passed: no request failed, no write or event was lost, and no event arrived twice. With the option
 * `--noisy`, one company sends far more requests than usual. The requests of the other companies must then not become too slow.
 */
import type { Settled } from "./recorder.ts";
import type { Row } from "./report.ts";

export interface Judged {
  /** Summaries of the requests of one phase: a row for each kind of request, and a last row for all requests together. */
  readonly rows: readonly Row[];
  /** The summary of all companies that do not share a throttle with the large company. It exists only with the option `--noisy`. */
  readonly others?: Row;
}

export interface Verdict {
  readonly holds: boolean;
  /** The reasons why the load test has failed, for example `2 lost events`. Empty if it has passed. */
  readonly faults: readonly string[];
  /**
   * How many times as long the requests of the other companies took while the large company sent more requests: the p99 latency of
   * `Judged.others` in the last phase, divided by that in the first phase. Undefined without the option `--noisy`, or if the latency in the
   * first phase is 0.
   */
  readonly ratio: number | undefined;
}

/**
 * @param phases in the first phase, all companies send their usual requests; with the option `--noisy`, the large company sends more
 * requests than usual in the last phase
 * @param maxRatio the largest `ratio` that the verdict accepts. The ratio says how much slower the requests of the other companies were in
 * the last phase. 0 accepts every ratio.
 */
export function verdictOf(
  phases: readonly Judged[],
  { lostWrites, lostEvents, doubledEvents }: Settled,
  maxRatio: number,
): Verdict {
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
