/** Restores the newest facts of a company's activity, which are in unflushed entries of its search index. */

import { logWrites } from "#shared/company-index/activity/log.ts";
import { readLog } from "#shared/company-index/activity/read.ts";
import { identityOf } from "#shared/company-index/facts.ts";
import { readUnflushedFacts } from "#shared/company-index/unflushed-facts.ts";
import type { Write } from "#shared/db/expression.ts";
import type { Reads } from "#shared/db/reads.ts";

/** The number of the first row. No flush writes so many rows into the log. */
const FIRST_PART = 900;

/**
 * Returns rows of the log with the facts of the unflushed entries in a restored table. The entries themselves are not restored, because the
 * search index is built again. The log in the restored table may already contain some of the facts.
 */
export async function restoredFacts(restored: Reads, companyId: number): Promise<Write[]> {
  const { head, facts } = await readUnflushedFacts(restored, companyId);
  const { rows } = await readLog(restored, companyId);
  const logged = new Set(rows.flatMap((row) => row.facts.map(identityOf)));
  const others = facts.filter((fact) => !logged.has(identityOf(fact)));
  return logWrites(companyId, head.version, others, FIRST_PART);
}
