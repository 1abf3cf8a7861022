/**
 * A Lambda function keeps the prospects of recent pages in memory. This module removes them, so that a test can measure a list that must
 * read its prospects from the table.
 */
import type { Reads } from "#shared/db/reads.ts";
import { recentRows } from "#shared/prospects/list/page-rows.ts";

/**
 * A version number that no company has for its names. If the version of a company's names differs from the last one, the service removes
 * all prospects of this company from its memory.
 */
const NO_VERSION = -1;

export function forgetRows(table: Reads, companyId: number): void {
  recentRows(table, companyId, NO_VERSION);
}
