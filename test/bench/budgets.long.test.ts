/**
 * Asserts the budgets of docs/benchmarks.md that limit units of the table, rounds or bytes. The measured counts are the same in every run,
 * so the limits need no tolerance.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sized } from "../harness/tier.ts";
import { type Budget, isHeld } from "./budget.ts";
import { readMeasured } from "./cost/measured.ts";
import { costOf } from "./cost/model.ts";
import { deploymentOf } from "./cost/working-day.ts";
import { csvBudgets } from "./csv-budgets.ts";
import { type Counted, countReads, countWrites } from "./size-budgets.ts";
import { setStage } from "./stage.ts";
import { type BenchTable, startBenchTable } from "./table.ts";

let table: BenchTable;
beforeAll(async () => {
  table = await startBenchTable();
});
afterAll(() => table.stop());

const CREATES = 1_024;
/** Notes of each listed prospect. A hundred suffice in short runs: a list that read them would already exceed its limits. */
const NOTES = sized({ short: 100, wide: 1_000 });

/** Rows of the imported CSV file. An import writes batches of at most 2 048 rows, so one batch is full and one is partly filled. */
const CSV_ROWS = 3_000;

const broken = (budgets: readonly Budget[]): Budget[] => budgets.filter((budget) => !isHeld(budget));

describe("budgets are held", () => {
  let smaller: Counted | undefined;
  test.each([10_000, 100_000])(
    "at %d prospects, and reads cost no more than at the smaller size",
    { tags: "sized" },
    async (size) => {
      const counted = await countReads(await setStage(table, size), smaller, NOTES);
      expect(broken(counted.budgets)).toEqual([]);
      expect(broken(await countWrites(counted.stage, CREATES))).toEqual([]);
      smaller = counted;
    },
  );

  test("by the import and the export of a company as CSV", async () => {
    expect(broken(await csvBudgets(table, CSV_ROWS))).toEqual([]);
  });
});

test.each([
  [200, 100_000, 130],
  [20, 1_000_000, 200],
])("1 000 reps in %d companies with %d prospects cost at most %d dollars a month", (companies, prospects, dollars) => {
  const cost = costOf({ reps: 1_000, companies, prospects }, deploymentOf("production"), readMeasured());
  expect(cost.total).toBeLessThanOrEqual(dollars);
});
