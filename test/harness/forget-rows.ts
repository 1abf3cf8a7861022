/** Removes prospects from the memory of a function, so that a test can measure a list that reads them from the table. */
import type { Reads } from "#shared/db/reads.ts";
import { recentRows } from "#shared/prospects/list/page-rows.ts";

/** `recentRows` forgets a company's prospects if it gets a new version of the statuses, tags and users. No company has this version. */
const NO_VERSION = -1;

export function forgetRows(table: Reads, companyId: number): void {
  recentRows(table, companyId, NO_VERSION);
}
