/** Writes docs/latency.md: the latencies of requests on simulated working days. */
import { PROVISIONED } from "../../../infra/settings/capacity.ts";
import { prices } from "../../../infra/settings/prices.ts";
import { HOURS_A_MONTH } from "./assumptions.ts";
import type { Day, Scenario } from "./day.ts";
import { type Design, designOf } from "./design.ts";
import { functionOf, type Measured, type Operation } from "./measured.ts";
import { table } from "./tables.ts";
import { quantile, simulate } from "./working-day.ts";

export interface Choice {
  /** Number of prospects of the company. */
  readonly prospects: number;
  readonly seed?: number;
  /** The numbers of reps whose days are simulated. By default, all of `REPS`. */
  readonly reps?: readonly Reps[];
}

/** The minutes between two runs of the scheduled smoke test. */
const SMOKE_TEST_MINUTES = 5;

const onDemand = designOf("production");
const provisioned: Design = { ...onDemand, provisioned: Object.fromEntries(PROVISIONED.map((file) => [file, 1])) };
const usual = "with the smoke test";

const designs: Readonly<Record<string, Design>> = {
  "no prospects in memory": { ...onDemand, keepsRows: false },
  "on demand": onDemand,
  [usual]: { ...onDemand, smokeTestMinutes: SMOKE_TEST_MINUTES },
  "one environment provisioned": provisioned,
  "provisioned, index loaded at its start": { ...provisioned, loadsAtStart: true },
};

export const REPS = [1, 50, 1_000] as const;
type Reps = (typeof REPS)[number];

/**
 * Number of simulated days for each number of reps. One rep sends only about 30 lists in a day, so the percentiles for one rep need many
 * days.
 */
const DAYS: Readonly<Record<Reps, number>> = { 1: 40, 50: 1, 1000: 1 };

const SHOWN: readonly Operation[] = ["list", "pins", "patch", "detail", "create"];

interface Latencies {
  readonly startShare: number;
  readonly sorted: Float64Array;
}

/** Simulates several days with different random numbers. */
function daysOf(scenario: Scenario, design: Design, measured: Measured, count: number, seed?: number): Day[] {
  return Array.from({ length: count }, (_, i) =>
    i === 0 && seed === undefined
      ? simulate(scenario, design, measured)
      : simulate(scenario, design, measured, (seed ?? 0) + i),
  );
}

function latenciesOf(days: readonly Day[], operation: Operation): Latencies {
  const all = days.map(({ functions }) => functions.get(functionOf[operation]));
  const sum = (of: "starts" | "requests"): number => all.reduce((total, day) => total + (day?.[of] ?? 0), 0);
  const values = days.flatMap(({ latencies }) => [...(latencies.get(operation) ?? [])]);
  return { startShare: sum("starts") / sum("requests"), sorted: Float64Array.from(values).sort() };
}

const cells = ({ startShare, sorted }: Latencies): string[] => [
  `${(100 * startShare).toFixed(1)} %`,
  ...[0.5, 0.9, 0.99].map((part) => quantile(sorted, part).toFixed(0)),
];

export function latencyReport(measured: Measured, { prospects, seed, reps: chosen = REPS }: Choice): string {
  const days = (reps: Reps, design: Design): Day[] =>
    daysOf({ reps, companies: 1, prospects }, design, measured, DAYS[reps], seed);
  const lists: string[][] = [];
  const others: string[][] = [];
  for (const reps of chosen) {
    for (const [name, design] of Object.entries(designs)) {
      const simulated = days(reps, design);
      lists.push([`${reps}`, name, ...cells(latenciesOf(simulated, "list"))]);
      if (name === usual)
        for (const operation of SHOWN) others.push([`${reps}`, operation, ...cells(latenciesOf(simulated, operation))]);
    }
  }
  const quantiles = ["starts", "p50", "p90", "p99"];
  return `${[
    "# How long a request takes",
    `\`npm run simulate -- --write\` writes this page. The command simulates working days of reps in one company with ${prospects} prospects
([working-day.ts](../test/bench/cost/working-day.ts), [assumptions.ts](../test/bench/cost/assumptions.ts)). It simulates the requests of the reps, and
the environments (instances of a Lambda function) that Lambda starts and ends. For each environment, it simulates which search indexes and
prospects are in memory. The processor times were measured on ${measured.date}. The latencies of DynamoDB and other AWS services are assumptions,
because no function was measured in an AWS account. This command prints the page for a smaller company:

\`\`\`sh slow
npm run simulate -- --prospects 10000
\`\`\``,
    `All times in the tables are milliseconds and include the time in API Gateway. \`starts\` is the share of requests that had to wait until Lambda
had started an environment.`,
    "## Lists",
    table(["reps", "environments", ...quantiles], lists),
    `The column *environments* names the simulated variant:

- *on demand*: Lambda starts an environment when no existing environment is free. This is the default of the preset \`small\`.
- *no prospects in memory*: as *on demand*, but each list reads the rows of its page from the table. All lists did this before [functions kept
  prospects in memory](decisions/2026-11-21-lists-from-the-index.md).
- *with the smoke test*: as *on demand*, but the [scheduled smoke test](deploy.md#watch) also calls the functions every ${SMOKE_TEST_MINUTES} minutes. Therefore
  Lambda rarely ends all environments of a function. This is the default of the preset \`production\`.
- *one environment provisioned*: as *on demand*, but with the setting \`warmEnvironments=1\`, Lambda always keeps one environment of each of three
  functions ready. ${dollarsText()}
- *provisioned, index loaded at its start*: as *one environment provisioned*, but a provisioned environment also loads the search index of the
  company before its first request. The service does not do this.`,
    "## Other requests, with the smoke test",
    table(["reps", "request", ...quantiles], others),
  ].join("\n\n")}\n`;
}

function dollarsText(): string {
  const parts = PROVISIONED.map((file) => {
    const gb = onDemand.memoryMb(file) / 1_024;
    return `${(gb * HOURS_A_MONTH * 3_600 * prices.lambda.provisionedGbSecond).toFixed(2)} for \`${file}\``;
  });
  return `This costs, in dollars a month, ${parts.join(", ")}.`;
}
