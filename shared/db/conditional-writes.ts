/**
 * Conditional writes. `optimistic` repeats a read and a conditional write after a conflict. `updateEach` makes several updates and
 * returns those whose conditions fail.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Write } from "#shared/db/expression.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed, TableBusy } from "#shared/errors.ts";

/**
 * Maximum number of attempts. It is enough for about fifty concurrent writers of one record. Usually the request's deadline ends the
 * attempts earlier.
 */
const TRIES = 60;

/**
 * Repeats `work` after a failed condition (optimistic concurrency). `work` must read the record at each call, and write only if the record
 * has not changed since this read. If `isConflict` returns false, the error is thrown without a repetition.
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

type Update = Extract<Write, { update: unknown }>;

/**
 * Makes each update whose condition holds. Returns the updates whose conditions have failed. Several updates are sent as one transaction,
 * which is a single call but costs one and a half times the write units. A single update is sent without a transaction.
 */
export async function updateEach<T extends Update>(table: Table, updates: readonly T[]): Promise<T[]> {
  const refused: T[] = [];
  let left = [...updates];
  while (left.length > 0) {
    try {
      const [first, ...more] = left;
      if (first !== undefined && more.length === 0) await table.write(first);
      else await table.transact(left);
      break;
    } catch (error) {
      if (!(error instanceof ConditionFailed)) throw error;
      const failed = new Set(error.failed.map(({ index }) => index));
      refused.push(...left.filter((_, i) => failed.has(i)));
      left = left.filter((_, i) => !failed.has(i));
    }
  }
  return refused;
}
