/** Ids for everything that the rows of a file become. */
import type { Ids } from "#shared/db/ids.ts";
import { blockOf } from "#shared/db/keys.ts";
import type { Blocks, Counts } from "#shared/jobs/import/schema.ts";

/** The first of each. */
export async function leaseForImport(ids: Ids, companyId: number, importId: number, count: Counts): Promise<Counts> {
  const name = String(importId);
  const [prospect, address, note, change] = await Promise.all([
    count.prospect > 0 ? ids.takeForImport("prospect", companyId, count.prospect, name) : 0,
    count.address > 0 ? ids.takeForImport("address", companyId, count.address, name) : 0,
    count.note > 0 ? ids.take(count.note) : 0,
    count.change > 0 ? ids.take(count.change) : 0,
  ]);
  return { prospect, address, note, change };
}

export const blocksOf = (first: number, count: number): Blocks | null =>
  count === 0 ? null : { from: blockOf(first), to: blockOf(first + count - 1) };
