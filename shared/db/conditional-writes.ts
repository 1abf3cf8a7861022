/**
 * Two kinds of conditional writes: `optimistic` repeats a read and a write until no conflict occurs, and `updateEach` makes each of many
 * updates whose condition holds.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Write } from "#shared/db/expression.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed, TableBusy } from "#shared/errors.ts";

/**
 * The number of attempts. It is enough for about fifty concurrent writers of one record, and the deadline of the request usually comes
 * first.
 */
const TRIES = 60;

/**
 * Optimistic concurrency: `work` reads, decides, and writes on the condition that no other writer has changed the record. `work` must read
 * again at each call. If `isConflict` does not accept a ConditionFailed, the error is thrown at once.
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
 * Makes each update whose condition holds, and returns the other updates. Several updates go into one transaction, which is a single call
 * but costs one and a half times as many write units. A single update is written without a transaction.
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
