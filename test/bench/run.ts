/** `npm run bench` measures the budgets of docs/benchmarks.md. */
import { optionsOrExit } from "../../infra/cli/command/options.ts";
import { type Budget, inDigits, isHeld, sizeOf } from "./budget.ts";
import { bulkSpeed } from "./bulk-budgets.ts";
import { csvBudgets } from "./csv-budgets.ts";
import { listBesideBareReads, listRate } from "./list-cost.ts";
import { mapTimes } from "./map-budgets.ts";
import { memoryBudgets } from "./memory.ts";
import { polygonBudgets } from "./polygon-budgets.ts";
import { type Comparison, compare } from "./postgres.ts";
import { type Postgres, startPostgres } from "./postgres-server.ts";
import { authorizerBudgets } from "./read-budgets.ts";
import { type Measured, report } from "./report.ts";
import { searchBudgets } from "./search-budgets.ts";
import { type Counted, countReads, countWrites } from "./size-budgets.ts";
import { setStage } from "./stage.ts";
import { startBudgets } from "./starts.ts";
import { type BenchTable, startBenchTable } from "./table.ts";
import { deepPageTimes, type ListTimes, listTimes, pinTimes } from "./times.ts";
import { measureWebhooks } from "./webhooks.ts";
import { writePage } from "./written-page.ts";

const usage = `npm run bench -- [options]
    measures the service with companies of 10000 and 100000 prospects, and compares the results with the budgets
    --index, --csv, --webhooks   measures only these parts
    --large                      also measures a company of a million prospects
    --postgres                   also compares with Postgres, if it is installed
    --write                      writes the tables into docs/benchmarks.md
exit code 0: all budgets are held, 1: a budget is not held, or any other error, 2: wrong usage`;
const flag = { type: "boolean" } as const;
const options = optionsOrExit(
  { large: flag, postgres: flag, write: flag, index: flag, csv: flag, webhooks: flag },
  usage,
);
const isWhole = options.index !== true && options.csv !== true && options.webhooks !== true;
const parts = {
  index: isWhole || options.index === true,
  csv: isWhole || options.csv === true,
  webhooks: isWhole || options.webhooks === true,
};
const sizes = [10_000, 100_000, ...(options.large === true ? [1_000_000] : [])];

const progress = (text: string): void => console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);

/**
 * Prospects that are created to measure the background work on the search index. With `--large`, the company of 100 000 prospects gets more
 * prospects than it has, so that the largest part of the index is merged too.
 */
const createsAt = (count: number): number => (options.large === true && count === 100_000 ? 131_072 : 4_096);

/** Numbers of prospects for which the worst polygons and searches are measured. */
const WORST_SIZES = [10_000, 200_000] as const;

async function measureAll(table: BenchTable, postgres: Postgres | undefined): Promise<Measured> {
  if (parts.webhooks) progress("webhooks");
  const webhooks = parts.webhooks ? await measureWebhooks() : undefined;
  const index = parts.index ? await measureIndex(table, postgres) : { budgets: [], times: [], comparisons: [] };
  const { budgets, times, comparisons } = index;
  for (const count of parts.csv ? sizes : []) {
    progress(`${sizeOf(count)}: CSV`);
    budgets.push(...(await csvBudgets(table, count)));
  }
  const without =
    options.postgres === true ? "Postgres is not installed here: nothing is compared with it." : undefined;
  return {
    budgets,
    times,
    webhooks,
    postgres: postgres === undefined ? without : { version: postgres.version, comparisons },
  };
}

async function measureIndex(table: BenchTable, postgres: Postgres | undefined) {
  const budgets: Budget[] = [];
  const times: ListTimes[] = [];
  const comparisons: Comparison[] = [];
  progress("starts");
  budgets.push(...(await startBudgets()));
  progress("authorizer");
  budgets.push(...(await authorizerBudgets(table)));
  progress("lists through the local service");
  budgets.push(...(await listRate()));
  let smallest: Counted | undefined;
  for (const count of sizes) {
    progress(`${sizeOf(count)}: index`);
    const stage = await setStage(table, count);
    progress(`${sizeOf(count)}: reads`);
    const counted = await countReads(stage, smallest);
    if (smallest === undefined) budgets.push(...(await listBesideBareReads(stage, table.endpoint)));
    smallest ??= counted;
    times.push(...(await listTimes(stage)), await deepPageTimes(stage));
    budgets.push(
      ...counted.budgets,
      await pinTimes(stage),
      ...(await mapTimes(stage)),
      ...(await memoryBudgets(stage, table.endpoint)),
    );
    if (postgres !== undefined) {
      progress(`${sizeOf(count)}: Postgres`);
      comparisons.push(...(await compare(postgres, stage)));
    }
    if (smallest === counted) budgets.push(...(await bulkSpeed(stage, table.endpoint)));
    if (count === WORST_SIZES[0]) budgets.push(...(await polygonBudgets(stage)));
    progress(`${sizeOf(count)}: writes`);
    budgets.push(...(await countWrites(stage, createsAt(count))));
    if (count === WORST_SIZES[0]) budgets.push(...(await searchBudgets(stage)));
  }
  progress(`${sizeOf(WORST_SIZES[1])}: polygons and searches`);
  const stage = await setStage(table, WORST_SIZES[1]);
  budgets.push(...(await polygonBudgets(stage)), ...(await searchBudgets(stage)));
  return { budgets, times, comparisons };
}

const postgres = options.postgres === true ? await startPostgres() : undefined;
const table = await startBenchTable();
try {
  const measured = await measureAll(table, postgres);
  const text = report(measured);
  console.log(text);
  if (options.write === true) writePage("benchmarks.md", "npm run bench -- --write", text);
  const broken = [...measured.budgets, ...(measured.webhooks?.budgets ?? [])].filter((budget) => !isHeld(budget));
  for (const { text: what, size, limit, measured: found } of broken) {
    progress(`not held: ${what}${size === "" ? "" : ` (${size})`}: ${inDigits(found)} instead of ${limit}`);
    process.exitCode = 1;
  }
} finally {
  postgres?.stop();
  await table.stop();
}
// The test harness does not stop the DynamoDB server of the webhook benches. This server would keep the process alive.
process.exit();
