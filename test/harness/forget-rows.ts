/**
 * Removes the prospects of recent pages from the memory of a function, so that a test can measure a list that must read its prospects from
 * the table.
 */
import type { Reads } from "#shared/db/reads.ts";
import { recentRows } from "#shared/prospects/list/page-rows.ts";

/**
 * A version that no company's names have. The names are those of statuses, tags and users. If `recentRows` gets another version than at its
 * last call for a company, it removes all prospects of this company from memory.
 */
const NO_VERSION = -1;

export function forgetRows(table: Reads, companyId: number): void {
  recentRows(table, companyId, NO_VERSION);
}
