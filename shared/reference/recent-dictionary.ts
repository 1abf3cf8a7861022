/** Dictionaries kept in a warm function, each with the version that says whether it still holds. */

import type { ApiContext } from "#shared/context.ts";
import type { Table } from "#shared/db/table.ts";
import { limits } from "#shared/limits.ts";
import { type Dictionary, loadDictionary } from "#shared/reference/dictionary.ts";

type Source = Pick<ApiContext, "table" | "clock">;

interface Kept {
  readonly dictionary: Dictionary;
  /** Milliseconds since the epoch at which it was read. */
  readonly at: number;
}

/** A thousand users with their names take some 300 KB. */
const COMPANIES = 50;

/** By company, in the order in which they were read. */
const kept = new WeakMap<Table, Map<number, Kept>>();

/** What is in memory, if it was read within the last minute; whoever relies on it checks its version. */
export async function recentDictionary(source: Source, companyId: number): Promise<Dictionary> {
  const found = keptBy(source.table).get(companyId);
  if (found !== undefined && source.clock.now() - found.at < limits.dictionaryCacheMs) return found.dictionary;
  return freshDictionary(source, companyId);
}

/** One Query. */
export async function freshDictionary({ table, clock }: Source, companyId: number): Promise<Dictionary> {
  const at = clock.now();
  const dictionary = await loadDictionary(table, companyId);
  const companies = keptBy(table);
  companies.delete(companyId);
  companies.set(companyId, { dictionary, at });
  for (const oldest of companies.keys()) {
    if (companies.size <= COMPANIES) break;
    companies.delete(oldest);
  }
  return dictionary;
}

export function forgetDictionary({ table }: Source, companyId: number): void {
  keptBy(table).delete(companyId);
}

function keptBy(table: Table): Map<number, Kept> {
  const companies = kept.get(table) ?? new Map<number, Kept>();
  kept.set(table, companies);
  return companies;
}
