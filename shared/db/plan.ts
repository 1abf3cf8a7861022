/** The plan of a request: its writes and its answer. A verb only reads, and returns the plan. Its caller commits the plan once. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Write } from "#shared/db/expression.ts";
import { ConditionFailed, TableBusy } from "#shared/errors.ts";

/** A record that a plan creates or changes. The version of a record grows with each write. */
export interface Written {
  readonly id: number;
  readonly version: number;
}

export interface Plan<Answer> {
  /** The writes of one transaction. If there are none, the transaction stores only the answer or a receipt. */
  readonly writes: readonly Write[];
  readonly answer: Answer;
  /** The record that the plan creates or changes. The receipt of a device's operation contains its id and version. */
  readonly written?: Written;
  /**
   * Called if a condition fails. Returns the plan to commit instead. If it returns undefined, `carryOut` throws the error of the failed
   * write or calls the verb again, as the comment of `carryOut` says. If `refused` throws ConditionFailed, the verb is called again.
   */
  readonly refused?: (failed: ConditionFailed) => Promise<Plan<Answer> | undefined> | undefined;
  /** Called after the commit, and before the response. If the function is killed directly after the commit, this is never called. */
  readonly after?: () => Promise<unknown>;
}

export const unchanged = <Answer>(answer: Answer): Plan<Answer> => ({ writes: [], answer });

/**
 * Makes a plan and commits it. Returns the plan that was committed. If conditions fail and `Plan.refused` returns no other plan, there are
 * two cases. If every failed write has an error (`Write.orThrow`), the error of the first one is thrown. If at least one has none, its
 * record has changed since the plan read it, so the verb is called again.
 */
export async function carryOut<Answer>(
  verb: () => Promise<Plan<Answer>>,
  commit: (plan: Plan<Answer>) => Promise<void>,
): Promise<Plan<Answer>> {
  const plan = await optimistic(async () => committed(await verb(), commit));
  await plan.after?.();
  return plan;
}

async function committed<Answer>(
  plan: Plan<Answer>,
  commit: (plan: Plan<Answer>) => Promise<void>,
): Promise<Plan<Answer>> {
  try {
    await commit(plan);
    return plan;
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    const instead = await plan.refused?.(error);
    if (instead !== undefined) return committed(instead, commit);
    const errors = error.failed.map(({ index, item }) => plan.writes[index]?.orThrow?.(item));
    throw errors.includes(undefined) ? error : (errors[0] ?? error);
  }
}

/** Maximum attempts, enough for about fifty concurrent writers of one record. Usually, the deadline ends the attempts earlier. */
const TRIES = 60;

/**
 * Calls `work` again when a condition fails (optimistic concurrency). Each call must read the record, and write on condition that the
 * record is unchanged. Throws every other error, and a failed condition for which `isConflict` returns false.
 */
export async function optimistic<T>(
  work: () => Promise<T>,
  isConflict: (error: ConditionFailed) => boolean = () => true,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ConditionFailed) || !isConflict(error)) throw error;
      if (attempt === TRIES) throw new TableBusy("the record kept changing", { cause: error });
      await sleep(Math.random() * Math.min(200, 5 * 2 ** attempt));
    }
  }
}
