/**
 * `npm run simulate` prints the latencies of requests on a simulated working day, for 1, 50 and 1 000 reps of one company of 100 000
 * prospects, with and without provisioned concurrency. The random numbers have a fixed seed, so each run prints the same. `--prospects N`
 * chooses another company, and `--seed N` another day.
 */
import { parseArgs } from "node:util";
import { PROVISIONED } from "../../../infra/settings/capacity.ts";
import { prices } from "../../../infra/settings/prices.ts";
import { HOURS_A_MONTH } from "./assumptions.ts";
import { type Design, designOf } from "./design.ts";
import { functionOf, type Operation, readMeasured } from "./measured.ts";
import { type Day, quantile, simulate } from "./working-day.ts";

const { values: options } = parseArgs({ options: { prospects: { type: "string" }, seed: { type: "string" } } });
const prospects = Number(options.prospects ?? 100_000);
const seed = options.seed === undefined ? undefined : Number(options.seed);
const measured = readMeasured();

const designs: Record<string, Design> = {
  "on demand": designOf("production"),
  "one environment provisioned": {
    ...designOf("production"),
    provisioned: Object.fromEntries(PROVISIONED.map((file) => [file, 1])),
  },
};

const SHOWN: readonly Operation[] = ["list", "pins", "patch", "detail", "create"];

function rowOf({ functions, latencies }: Day, operation: Operation): string[] {
  const day = functions.get(functionOf[operation]);
  const sorted = latencies.get(operation) ?? new Float64Array();
  const share = day === undefined ? 0 : (100 * day.starts) / day.requests;
  return [operation, `${share.toFixed(1)} %`, ...[0.5, 0.9, 0.99].map((part) => quantile(sorted, part).toFixed(0))];
}

console.log(
  `One company of ${prospects} prospects, measured on ${measured.date}. Milliseconds, the gateway included.\n`,
);
console.log("| reps | environments | operation | starts | p50 | p90 | p99 |\n|---|---|---|---|---|---|---|");
for (const reps of [1, 50, 1_000]) {
  for (const [name, design] of Object.entries(designs)) {
    const day = simulate({ reps, companies: 1, prospects }, design, measured, seed);
    for (const operation of SHOWN) console.log(`| ${[reps, name, ...rowOf(day, operation)].join(" | ")} |`);
  }
}
const { memoryMb } = designOf("production");
const dollars = PROVISIONED.map(
  (file) => (memoryMb(file) / 1_024) * HOURS_A_MONTH * 3_600 * prices.lambda.provisionedGbSecond,
);
const parts = PROVISIONED.map((file, i) => `${file} ${dollars[i]?.toFixed(2)}`);
console.log(`\nDollars a month for one provisioned environment: ${parts.join(", ")}.`);
