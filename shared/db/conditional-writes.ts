/** Two ways to write on conditions: retry a read and write until it has no conflict, or write each of many items if its condition holds. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Write } from "#shared/db/expression.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed, TableBusy } from "#shared/errors.ts";

/** Enough for about fifty writers of one record. The request's deadline comes earlier. */
const TRIES = 60;

/**
 * Optimistic concurrency: `work` reads, decides, and writes on the condition that no other writer changed the record. It must read again
 * at each call. A ConditionFailed that `isConflict` does not accept is thrown at once.
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
 * Makes each update whose condition holds, and returns the other updates. Uses a transaction: one call for all, at half as many units
 * again. A single update needs no transaction.
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
