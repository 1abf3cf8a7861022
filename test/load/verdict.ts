/** Decides whether a load has held: nothing failed or was lost, and the noisy company did not slow the others down too much. */
import type { Settled } from "./recorder.ts";
import type { Row } from "./report.ts";

export interface Judged {
  /** The last row contains all requests of the phase. */
  readonly rows: readonly Row[];
  /** The figures of the companies that do not share a throttle with the large company. They exist only with the option `--noisy`. */
  readonly others?: Row;
}

export interface Verdict {
  readonly holds: boolean;
  /** One text for each reason why the load has not held. */
  readonly faults: readonly string[];
  /**
   * The p99 latency of the `others` in the last phase, divided by their p99 latency in the first phase. Undefined without a noisy company,
   * or if the latency in the first phase is 0.
   */
  readonly ratio: number | undefined;
}

/**
 * @param phases in the first phase, all companies send their usual requests; with a noisy company, it sends more requests in the last phase
 * @param maxRatio the largest `ratio` that the verdict accepts; 0 accepts every ratio
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
