/** Conditional writes that have nothing to do with each other, in few calls: each is made where its condition holds. */

import type { Write } from "#shared/db/item.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";

type Update = Extract<Write, { update: unknown }>;

/**
 * Gives those whose condition did not hold: they have changed nothing. As a transaction, which costs half as much again and
 * one call for all; a single one is written by itself.
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
