/**
 * Measures all budgets of a company that limit units, rounds or bytes. run.ts prints the results, and budgets.long.test.ts asserts them.
 */
import { attachedBudgets, NOTES } from "./attached-budgets.ts";
import type { Budget } from "./budget.ts";
import { bulkUnits } from "./bulk-budgets.ts";
import { mapUnits } from "./map-budgets.ts";
import { pullBudgets } from "./pull-budgets.ts";
import { pushBudgets } from "./push-budgets.ts";
import * as reads from "./read-budgets.ts";
import type { Stage } from "./stage.ts";
import { backgroundBudgets, writeBudgets } from "./write-budgets.ts";

/**
 * Bulk jobs, operations of devices and `GET /api/changes` are measured only in companies with at most this many prospects, because their
 * costs do not depend on the company's size.
 */
const PUSHED_PROSPECTS = 10_000;

export interface Counted {
  readonly stage: Stage;
  readonly warm: reads.WarmUsage;
  readonly budgets: readonly Budget[];
}

/**
 * Measures the budgets of reads. Call it before `countWrites`, because unflushed writes make reads more expensive. `notes` is the number of
 * notes of a listed prospect.
 */
export async function countReads(stage: Stage, smaller?: Counted, notes = NOTES): Promise<Counted> {
  await reads.fillLists(stage);
  const warm = await reads.warmUsage(stage);
  const { firstId, count } = stage.company;
  const budgets = [
    ...reads.warmBudgets(stage, warm),
    ...(smaller === undefined ? [] : reads.growthBudgets(smaller.stage, stage, smaller.warm, warm)),
    ...(await reads.coldBudgets(stage)),
    ...(await reads.bboxBudgets(stage)),
    ...(await reads.pinBudgets(stage)),
    ...(await reads.roundsBudgets(stage, firstId + count - 1)),
    // The map is measured after the reads above, because its territory adds an index entry that makes reads more expensive.
    ...(await mapUnits(stage)),
    // The costs of notes, past statuses and appointments do not depend on the number of prospects, so only the first company measures them.
    ...(smaller === undefined ? await attachedBudgets(stage, notes) : []),
  ];
  return { stage, warm, budgets };
}

export async function countWrites(stage: Stage, creates: number): Promise<Budget[]> {
  const few = stage.company.count <= PUSHED_PROSPECTS;
  const many = few ? [...(await bulkUnits(stage)), ...(await pushBudgets(stage)), ...(await pullBudgets(stage))] : [];
  return [...(await writeBudgets(stage)), ...(await backgroundBudgets(stage, creates)), ...many];
}
