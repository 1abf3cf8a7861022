/** The budgets that count units, rounds and bytes, at 10 k and 100 k prospects: they are the same in each run. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Budget, isHeld } from "./budget.ts";
import { type Counted, countReads, countWrites } from "./size-budgets.ts";
import { setStage } from "./stage.ts";
import { type BenchTable, startBenchTable } from "./table.ts";

let table: BenchTable;
beforeAll(async () => {
  table = await startBenchTable();
});
afterAll(() => table.stop());

/** Creates whose background is counted. */
const CREATES = 1_024;

const broken = (budgets: readonly Budget[]): Budget[] => budgets.filter((budget) => !isHeld(budget));

describe("budgets are held", () => {
  let small: Counted;
  test("at 10 k prospects", async () => {
    small = await countReads(await setStage(table, 10_000));
    expect(broken(small.budgets)).toEqual([]);
    expect(broken(await countWrites(small.stage, CREATES))).toEqual([]);
  });

  test("at 100 k, where reads cost no more", async () => {
    const large = await countReads(await setStage(table, 100_000), small);
    expect(broken(large.budgets)).toEqual([]);
    expect(broken(await countWrites(large.stage, CREATES))).toEqual([]);
  });
});
