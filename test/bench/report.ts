/** Prints the measurements as Markdown tables, for the terminal and for docs/benchmarks.md. */
import { cpus, totalmem } from "node:os";
import { type Budget, inDigits, isHeld } from "./budget.ts";
import type { Comparison } from "./postgres.ts";
import type { ListTimes } from "./times.ts";
import type { DeliveryTimes } from "./webhook-times.ts";
import type { WebhookFigures } from "./webhooks.ts";

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

The table shows the medians of several measurements of one function in milliseconds:

- *cold*: the whole request with empty caches, so that the list loads the index from DynamoDB.
- *warm*: the whole request with the company's index in the function's memory.
- *CPU*: the function's processor time during the request, without that of the local DynamoDB server.
- *in memory*: the part of a warm request that finds the exact total and the ids of the page in the index, without calls to DynamoDB.`;

const WEBHOOKS = "## Webhooks";

const DELIVERIES = `The table shows milliseconds from the commit of a change to the arrival of its event, through the whole local service. The service and the
receiver share the processors of one machine. *Bare* is a loop that only posts the same bodies at the same rate, on one open connection.
*A second* is the number of events that arrived each second. *Ratio* is that number divided by the bare loop's.`;

const POSTGRES = `## Beside Postgres

The bench stores the same rows in Postgres on the same machine, in memory, with btree, GiST, GIN and pg_trgm indexes. *Postgres* is the time
of \`count(*)\` and the ids of the page; *here* is the time in which the company index finds the exact total and the same ids. Times are
milliseconds. *Ratio* is Postgres's time divided by ours. The bench fails if the two find different rows. If PostGIS is installed, it makes
the same map tiles with \`ST_AsMVT\`, and finds the prospects in the same territory with \`ST_Within\`.`;

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

function budgetTable(budgets: readonly Budget[]): string {
  const rows = budgets
    .toSorted((a, b) => a.number - b.number)
    .map((budget) => [
      budget.number === 0 ? "" : String(budget.number),
      budget.text,
      budget.size,
      budget.limit === null ? "" : `<= ${inDigits(budget.limit)}`,
      inDigits(budget.measured),
      budget.limit === null ? "" : isHeld(budget) ? "held" : "**not held**",
    ]);
  return table(["#", "budget", "prospects", "limit", "measured", ""], rows);
}

const plainBudgetTable = (budgets: readonly Budget[]): string =>
  table(
    ["budget", "limit", "measured", ""],
    budgets.map((budget) => {
      const { text, limit, measured } = budget;
      const verdict = limit === null ? "" : isHeld(budget) ? "held" : "**not held**";
      return [text, limit === null ? "" : `<= ${inDigits(limit)}`, inDigits(measured), verdict];
    }),
  );

const deliveryTable = (times: readonly DeliveryTimes[]): string =>
  table(
    ["events a second", "events", "p50", "p99", "a second", "bare p50", "bare p99", "bare, a second", "ratio"],
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

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, i) => Math.max(title.length, 3, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}
