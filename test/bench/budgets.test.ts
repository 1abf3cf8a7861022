/** The budgets that count units, rounds and bytes, at 10 k and, in the wide tier, 100 k prospects: they are the same in each run. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sized } from "../tier.ts";
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

const sizes = [10_000, 100_000].slice(0, sized({ short: 1, wide: 2 }));

const broken = (budgets: readonly Budget[]): Budget[] => budgets.filter((budget) => !isHeld(budget));

describe("budgets are held", () => {
  let smaller: Counted | undefined;
  test.each(sizes)("at %d prospects, where reads cost no more than at fewer", { tags: "sized" }, async (size) => {
    const counted = await countReads(await setStage(table, size), smaller);
    expect(broken(counted.budgets)).toEqual([]);
    expect(broken(await countWrites(counted.stage, CREATES))).toEqual([]);
    smaller = counted;
  });
});
