/**
 * Measures all budgets that limit read units, write units, round trips to the table or bytes, for one company. run.ts prints the results,
 * and budgets.long.test.ts asserts them.
 */
import { attachedBudgets, NOTES } from "./attached-budgets.ts";
import type { Budget } from "./budget.ts";
import { bulkUnits } from "./bulk-budgets.ts";
import { mapUnits } from "./map-budgets.ts";
import { pullBudgets } from "./pull-budgets.ts";
import { pushBudgets } from "./push-budgets.ts";
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

/** Maximum number of prospects of a company for which the costs of bulk jobs, pushed operations and the feed of changes are measured. */
const PUSHED_PROSPECTS = 10_000;

export interface Counted {
  readonly stage: Stage;
  readonly warm: WarmUsage;
  readonly budgets: readonly Budget[];
}

/**
 * Measures the budgets of reads. Call it before `countWrites`: until a flush, new writes are not part of the stored search index, and make
 * reads more expensive. `notes` is the number of notes that each prospect of a list gets.
 */
export async function countReads(stage: Stage, smaller?: Counted, notes = NOTES): Promise<Counted> {
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
    // The map is measured after the reads above, because its territory adds an index entry, which would make them more expensive.
    ...(await mapUnits(stage)),
    // Budget 14 does not depend on the number of prospects. It is therefore measured only for the first company, where `smaller` is
    // undefined.
    ...(smaller === undefined ? await attachedBudgets(stage, notes) : []),
  ];
  return { stage, warm, budgets };
}

/**
 * Measures the budgets of writes and of the feed of changes. The costs of bulk jobs, pushed operations and the feed do not depend on the
 * company's size. They are therefore measured only for companies of at most `PUSHED_PROSPECTS` prospects.
 */
export async function countWrites(stage: Stage, creates: number): Promise<Budget[]> {
  const few = stage.company.count <= PUSHED_PROSPECTS;
  const many = few ? [...(await bulkUnits(stage)), ...(await pushBudgets(stage)), ...(await pullBudgets(stage))] : [];
  return [...(await writeBudgets(stage)), ...(await backgroundBudgets(stage, creates)), ...many];
}
