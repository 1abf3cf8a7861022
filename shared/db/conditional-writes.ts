/**
 * Helpers for conditional writes. `optimistic` repeats a read and its conditional write when the condition fails. `updateEach` executes
 * several updates and returns those whose conditions have failed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Write } from "#shared/db/expression.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed, TableBusy } from "#shared/errors.ts";

/**
 * Maximum number of attempts. 60 attempts are enough for about fifty concurrent writers of one record. Usually the request reaches its
 * deadline before the last attempt.
 */
const TRIES = 60;

/**
 * Calls `work` again when a condition fails (optimistic concurrency). Each call of `work` must read the record, and must write only on the
 * condition that the record has not changed since this read. If `isConflict` returns false for an error, the error is thrown without
 * another call.
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

/** Maximum number of writes of one transaction of DynamoDB. */
const TRANSACTION_WRITES = 100;

/**
 * Executes each update whose condition holds, and returns the updates whose conditions have failed. Up to 100 updates are sent as one
 * transaction. A transaction needs only one request, but costs more write units than single updates. If only one update is to be sent, it
 * is sent without a transaction.
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
