/**
 * The dictionary of a company: its statuses, tags and users, read by one Query and cached in a warm function.
 *
 * Every change of a status, tag or user raises the dictionary's version. A reader of the cache must check that version.
 */
import { StoredUser } from "#shared/auth/user-schema.ts";
import { namesChangeInHead } from "#shared/company-index/manifest.ts";
import type { ApiContext } from "#shared/context.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { limits } from "#shared/limits.ts";
import { StoredCompany, StoredStatus, StoredTag } from "#shared/reference/schema.ts";

export interface Dictionary {
  /** Counts the changes of the names; these are of this version or a newer one. */
  readonly version: number;
  readonly statuses: ReadonlyMap<number, StoredStatus>;
  readonly tags: ReadonlyMap<number, StoredTag>;
  readonly users: ReadonlyMap<number, StoredUser>;
}

/** The company's row is the first in the order of keys: what is read after it is no older than the version that it tells. */
export async function loadDictionary(table: Table, companyId: number): Promise<Dictionary> {
  const statuses = new Map<number, StoredStatus>();
  const tags = new Map<number, StoredTag>();
  const users = new Map<number, StoredUser>();
  let version = 0;
  for await (const item of table.query(keys.reference(companyId))) {
    if (item.type === "company") version = StoredCompany.parse(item).dictionaryVersion ?? 0;
    else if (item.type === "status") keep(statuses, StoredStatus.parse(item));
    else if (item.type === "tag") keep(tags, StoredTag.parse(item));
    else if (item.type === "user") keep(users, StoredUser.parse(item));
  }
  return { version, statuses, tags, users };
}

/** Goes into the transaction of every write of a status, tag or user, so that nobody keeps a name that has changed. */
export const namesChange = (companyId: number): Write[] => [
  { update: keys.company(companyId), change: { add: { dictionaryVersion: 1 } } },
  namesChangeInHead(companyId),
];

function keep<T extends { id: number }>(into: Map<number, T>, entry: T): void {
  into.set(entry.id, entry);
}

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
