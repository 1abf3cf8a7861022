/**
 * The facts of a company's activity that are only in unflushed entries of its search index. Exports and restores need them as rows of the
 * log.
 */

import { type LogWrite, logWrites } from "#shared/company-index/activity/log.ts";
import { readLog } from "#shared/company-index/activity/read.ts";
import { identityOf } from "#shared/company-index/facts.ts";
import { readUnflushedFacts } from "#shared/company-index/unflushed-facts.ts";
import type { Reads } from "#shared/db/reads.ts";

/** The number of the first row that `unloggedFacts` makes. A flush numbers its rows from 0 and never makes so many, so no keys collide. */
const FIRST_PART = 900;

/** Returns rows of the log with the facts of the unflushed entries. Facts that are already in the log are omitted. */
export async function unloggedFacts(table: Reads, companyId: number): Promise<LogWrite[]> {
  const { head, facts } = await readUnflushedFacts(table, companyId);
  const { rows } = await readLog(table, companyId);
  const logged = new Set(rows.flatMap((row) => row.facts.map(identityOf)));
  const others = facts.filter((fact) => !logged.has(identityOf(fact)));
  return logWrites(companyId, head.version, others, FIRST_PART);
}
