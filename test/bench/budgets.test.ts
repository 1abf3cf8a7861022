/** The counting budgets (units, rounds, bytes) at 10 k and 100 k prospects. Each run gives the same numbers. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Budget, isHeld } from "./budget.ts";
import { csvBudgets } from "./csv-budgets.ts";
import { type Counted, countReads, countWrites } from "./size-budgets.ts";
import { setStage } from "./stage.ts";
import { type BenchTable, startBenchTable } from "./table.ts";

let table: BenchTable;
beforeAll(async () => {
  table = await startBenchTable();
});
afterAll(() => table.stop());

/** Creates whose background work is counted. */
const CREATES = 1_024;

/** One and a half batches of an import. */
const CSV_ROWS = 3_000;

const broken = (budgets: readonly Budget[]): Budget[] => budgets.filter((budget) => !isHeld(budget));

describe("budgets are held", () => {
  let smaller: Counted | undefined;
  test.each([10_000, 100_000])("at %d prospects, where reads cost no more than at fewer", async (size) => {
    const counted = await countReads(await setStage(table, size), smaller);
    expect(broken(counted.budgets)).toEqual([]);
    expect(broken(await countWrites(counted.stage, CREATES))).toEqual([]);
    smaller = counted;
  });

  test("by a company that moves in and out as CSV", async () => {
    expect(broken(await csvBudgets(table, CSV_ROWS))).toEqual([]);
  });
});
