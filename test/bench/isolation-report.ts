/** The budgets of `npm run bench:isolation`, and the text that it prints. */
import type { Budget } from "./budget.ts";
import { plainBudgetTable } from "./report.ts";

/** Milliseconds from the commit of an event to the arrival of its request at the receiver. */
export interface Times {
  readonly p50: number;
  readonly p99: number;
  readonly worst: number;
}

export interface Measured {
  readonly lines: readonly string[];
  readonly budgets: readonly Budget[];
}

export const headerOf = (events: string): readonly string[] => [
  `| ${events}: commit -> receiver, ms | p50 | p99 | worst |`,
  "|---|---:|---:|---:|",
];
export const row = (name: string, { p50, p99, worst }: Times): string => `| ${name} | ${p50} | ${p99} | ${worst} |`;

export const textOf = ({ lines, budgets }: Measured): string => `${lines.join("\n")}\n\n${plainBudgetTable(budgets)}\n`;

/** Shows how much later the 99th percentile (p99) of the latency of events is beside another load than `alone`. */
export const moved = (load: string, beside: Times, alone: Times): Budget => ({
  number: 12,
  text: `beside ${load}: p99 later than alone, ms (aim 1 000)`,
  size: "",
  limit: null,
  measured: beside.p99 - alone.p99,
});

/**
 * Returns the budget for ordinary events while a bulk job runs. It limits the delay of these events, divided by `lastMs`. The delay is the
 * difference between their 99th percentiles with the job (`beside`) and without it (`alone`). `lastMs` is the time from the end of the job
 * to the arrival of its last event. Without isolation, ordinary events would wait behind the events of the job, so the quotient would be
 * about 1. If `lastMs` is less than a second, the events of the job hardly wait. The divisor is then one second.
 */
export const overtakes = (load: string, beside: Times, alone: Times, lastMs: number): Budget => ({
  number: 12,
  text: `beside ${load}: p99 later than alone, by the delay of the load's last event`,
  size: "",
  limit: 0.5,
  measured: (beside.p99 - alone.p99) / Math.max(lastMs, 1_000),
});
