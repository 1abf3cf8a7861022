/**
 * Measures all budgets of one company that limit units, round trips or bytes. run.ts prints the results, and budgets.test.ts asserts
 * them.
 */
import { attachedBudgets } from "./attached-budgets.ts";
import type { Budget } from "./budget.ts";
import {
  bboxBudgets,
  coldBudgets,
  coldStartBudgets,
  detailBudgets,
  fillLists,
  growthBudgets,
  pinBudgets,
  type WarmUsage,
  warmBudgets,
  warmUsage,
} from "./read-budgets.ts";
import type { Stage } from "./stage.ts";
import { backgroundBudgets, writeBudgets } from "./write-budgets.ts";

export interface Counted {
  readonly stage: Stage;
  readonly warm: WarmUsage;
  readonly budgets: readonly Budget[];
}

/**
 * Measures the budgets of reads. Call it before `countWrites`, because new writes are not yet part of the stored search index and make
 * later reads more expensive.
 */
export async function countReads(stage: Stage, smaller?: Counted): Promise<Counted> {
  await fillLists(stage);
  const warm = await warmUsage(stage);
  const { firstId, count } = stage.company;
  const budgets = [
    ...warmBudgets(stage, warm),
    ...(smaller === undefined ? [] : growthBudgets(smaller.stage, stage, smaller.warm, warm)),
    ...(await coldBudgets(stage)),
    ...(await bboxBudgets(stage)),
    ...(await pinBudgets(stage)),
    ...(await detailBudgets(stage, firstId + count - 1)),
    ...(await coldStartBudgets(stage, firstId + count - 1)),
    // Budget 14 does not depend on the number of prospects, so it is measured only for the first company.
    ...(smaller === undefined ? await attachedBudgets(stage) : []),
  ];
  return { stage, warm, budgets };
}

export async function countWrites(stage: Stage, creates: number): Promise<Budget[]> {
  return [...(await writeBudgets(stage)), ...(await backgroundBudgets(stage, creates))];
}
