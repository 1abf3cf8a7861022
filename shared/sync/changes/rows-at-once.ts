/**
 * Decides how many rows of prospects one page of the feed of changes reads at a time. Rows that do not fit into the page are read in vain,
 * and each further portion of rows is one more round of calls. So the number depends on the size of the company's prospects, which this
 * function instance has seen in earlier pages.
 */
import type { Reads } from "#shared/db/reads.ts";
import * as limits from "#shared/limits.ts";

/**
 * Number of rows while the size of the company's prospects is unknown. It is a compromise. Most rows are 1 KB large, and a page of 1 000
 * rows then needs four reads. If rows have 32 KB of custom fields, a page is full after 120 rows, and the other 130 are read in vain.
 */
const UNKNOWN = 250;
/**
 * Minimum number of prospects in a page from which the mean size is computed. Fewer prospects say too little about the size of the others.
 * It is also the minimum number of rows that are read at a time.
 */
const SAMPLE = 32;
const REMEMBERED_COMPANIES = 1_000;

/** Mean bytes of a prospect in the feed, by company id. */
const meanBytes = new WeakMap<Reads, Map<number, number>>();

/** Returns the number of rows that will probably fit into a page. */
export function rowsAtOnce(table: Reads, companyId: number): number {
  const bytes = meanBytes.get(table)?.get(companyId);
  if (bytes === undefined) return UNKNOWN;
  return Math.max(SAMPLE, Math.min(limits.changesMax, Math.floor(limits.changesBytes / bytes)));
}

/** Remembers the mean size of the prospects of a page, unless the page has fewer than `SAMPLE`. */
export function learnFrom(table: Reads, companyId: number, { count, bytes }: { count: number; bytes: number }): void {
  if (count < SAMPLE) return;
  const companies = meanBytes.get(table) ?? new Map<number, number>();
  meanBytes.set(table, companies);
  companies.delete(companyId);
  companies.set(companyId, bytes / count);
  for (const oldest of companies.keys()) {
    if (companies.size <= REMEMBERED_COMPANIES) break;
    companies.delete(oldest);
  }
}
