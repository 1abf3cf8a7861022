/** Prints the measurements as Markdown tables, for the terminal and for docs/benchmarks.md. */
import { cpus, totalmem } from "node:os";
import { type Budget, inDigits, isHeld } from "./budget.ts";
import type { Comparison } from "./postgres.ts";
import type { ListTimes } from "./times.ts";
import type { DeliveryTimes } from "./webhook-times.ts";
import type { WebhookFigures } from "./webhooks.ts";
import { table } from "./written-page.ts";

export interface Measured {
  readonly budgets: readonly Budget[];
  readonly times: readonly ListTimes[];
  /** Undefined if the command's options exclude the webhook benches. */
  readonly webhooks: WebhookFigures | undefined;
  /** Undefined without the option `--postgres`. A string explains why Postgres did not start. */
  readonly postgres: { readonly version: string; readonly comparisons: readonly Comparison[] } | string | undefined;
}

export function report({ budgets, times, webhooks, postgres }: Measured): string {
  const parts = [machine(postgres)];
  if (budgets.length > 0) parts.push("## Budgets", budgetTable(budgets));
  if (times.length > 0) parts.push(TIMES, timeTable(times));
  if (webhooks !== undefined) parts.push(webhookReport(webhooks));
  if (typeof postgres === "object") parts.push(POSTGRES, comparisonTable(postgres.comparisons));
  else if (postgres !== undefined) parts.push(postgres);
  return `${parts.join("\n\n")}\n`;
}

const webhookReport = ({ budgets, times }: WebhookFigures): string =>
  [WEBHOOKS, plainBudgetTable(budgets), DELIVERIES, deliveryTable(times)].join("\n\n");

const TIMES = `## Times

The same function made each list several times. The table shows the medians of these times in milliseconds:

- *cold*: the whole request with empty caches. The function has to load the index from DynamoDB.
- *warm*: the whole request. The function already has the company's index in memory.
- *cold, CPU* and *warm, CPU*: the processor time of the function during these requests. The processor time of the local DynamoDB server is not included.
- *in memory*: only the part of a warm request in which the function finds the exact total and the ids of the page. This part makes no calls to DynamoDB.`;

const WEBHOOKS = "## Webhooks";

const DELIVERIES = `The next table shows how long an event takes from the commit of a change to its arrival at the receiver, in milliseconds (*p50*, *p99*). The
whole local service and the receiver ran on one machine and shared its processors. *Sent a second* is the rate at which changes
were made, and *arrived a second* is the rate at which their events arrived. For comparison, a plain loop posted the same bodies on one open
connection, at most at the same rate. The columns with *loop* contain its measurements. *Ratio* is the rate at which events arrived from the
service, divided by the rate at which bodies arrived from the loop.`;

const POSTGRES = `## Beside Postgres

The bench also stores the same rows in Postgres, on the same machine and in memory, with btree, GiST, GIN and pg_trgm indexes. The column
*Postgres* contains the time in which Postgres finds the exact total (\`count(*)\`) and the ids of the page. The column *here* contains the time
in which the company index finds the same total and ids. Both times are milliseconds. *Ratio* is the time of Postgres divided by the time of
the company index. The bench fails if Postgres and the company index find different rows.`;

function machine(postgres: Measured["postgres"]): string {
  const [cpu] = cpus();
  const parts = [
    `${cpu?.model ?? "unknown processor"}, ${cpus().length} cores`,
    `${Math.round(totalmem() / 2 ** 30)} GB of memory`,
    `${process.platform}-${process.arch}`,
    `Node.js ${process.versions.node}`,
    ...(typeof postgres === "object" ? [`Postgres ${postgres.version}`] : []),
    new Date().toISOString().slice(0, 10),
  ];
  return parts.join(", ");
}

function figuresOf(budget: Budget): string[] {
  const { limit, measured } = budget;
  if (limit === null) return ["", inDigits(measured), ""];
  return [`<= ${inDigits(limit)}`, inDigits(measured), isHeld(budget) ? "held" : "**not held**"];
}

const budgetTable = (budgets: readonly Budget[]): string =>
  table(
    ["#", "budget", "prospects", "limit", "measured", ""],
    budgets
      .toSorted((a, b) => a.number - b.number)
      .map((one) => [one.number === 0 ? "" : String(one.number), one.text, one.size, ...figuresOf(one)]),
  );

/** The table of budgets that have no number and concern no company. */
const plainBudgetTable = (budgets: readonly Budget[]): string =>
  table(
    ["budget", "limit", "measured", ""],
    budgets.map((budget) => [budget.text, ...figuresOf(budget)]),
  );

const deliveryTable = (times: readonly DeliveryTimes[]): string =>
  table(
    [
      ...["sent a second", "events", "p50", "p99", "arrived a second"],
      ...["loop p50", "loop p99", "loop, arrived a second", "ratio"],
    ],
    times.map(({ perSecond, events, ours, bare }) => [
      String(perSecond),
      String(events),
      ...[ours.p50, ours.p99, ours.throughput, bare.p50, bare.p99, bare.throughput].map(inDigits),
      inDigits(ours.throughput / bare.throughput),
    ]),
  );

const timeTable = (times: readonly ListTimes[]): string =>
  table(
    ["list", "prospects", "found", "cold", "cold, CPU", "warm", "warm, CPU", "in memory"],
    times.map(({ name, size, total, cold, warm, index }) => [
      name,
      size,
      String(total),
      ...[cold.wallMs, cold.cpuMs, warm.wallMs, warm.cpuMs, index.wallMs].map(inDigits),
    ]),
  );

const comparisonTable = (comparisons: readonly Comparison[]): string =>
  table(
    ["question", "prospects", "found", "here", "Postgres", "ratio"],
    comparisons.map(({ name, size, total, oursMs, postgresMs }) => [
      name,
      size,
      String(total),
      ...[oursMs, postgresMs, postgresMs / oursMs].map(inDigits),
    ]),
  );
