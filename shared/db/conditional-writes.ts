/** Repeats conditional writes, and sends several at once. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Write } from "#shared/db/expression.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed, TableBusy } from "#shared/errors.ts";

/** Attempts. 60 are enough for about fifty concurrent writers of one record. Usually the deadline comes first. */
const TRIES = 60;

/**
 * Calls `work` again when a condition fails (optimistic concurrency). Each call must read the record, and write only if it has not changed
 * since. Other errors than `isConflict` are thrown.
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

/** The maximum of DynamoDB. */
const TRANSACTION_WRITES = 100;

/**
 * Returns the updates whose conditions have failed. Up to 100 updates are one transaction, which needs only one request but costs more
 * write units.
 */
export async function updateEach<T extends Update>(table: Table, updates: readonly T[]): Promise<T[]> {
  const refused: T[] = [];
  for (let from = 0; from < updates.length; from += TRANSACTION_WRITES) {
    refused.push(...(await updateTogether(table, updates.slice(from, from + TRANSACTION_WRITES))));
  }
  return refused;
}

async function updateTogether<T extends Update>(table: Table, updates: readonly T[]): Promise<T[]> {
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
