/**
 * The dictionary of a company: its statuses, tags and users, read by one Query and cached in a warm function.
 *
 * Every change of a status, tag or user raises the dictionary's version. A cached dictionary is valid only while that version is current.
 */
import { StoredUser } from "#shared/auth/user-schema.ts";
import { namesChangeInHead } from "#shared/company-index/manifest.ts";
import type { ApiContext } from "#shared/context.ts";
import type { Write } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { limits } from "#shared/limits.ts";
import { StoredCompany, StoredStatus, StoredTag } from "#shared/reference/schema.ts";

export interface Dictionary {
  /** The number of changes so far. The entries are of this version or of a later one. */
  readonly version: number;
  readonly statuses: ReadonlyMap<number, StoredStatus>;
  readonly tags: ReadonlyMap<number, StoredTag>;
  readonly users: ReadonlyMap<number, StoredUser>;
}

/** The company's row comes first in key order, so every entry is read after the version and is never older. */
export async function loadDictionary(table: Table, companyId: number): Promise<Dictionary> {
  const statuses = new Map<number, StoredStatus>();
  const tags = new Map<number, StoredTag>();
  const users = new Map<number, StoredUser>();
  let version = 0;
  for await (const item of table.query(keys.reference(companyId))) {
    if (item.type === "company") version = versionOf(item);
    else if (item.type === "status") keep(statuses, StoredStatus.parse(item));
    else if (item.type === "tag") keep(tags, StoredTag.parse(item));
    else if (item.type === "user") keep(users, StoredUser.parse(item));
  }
  return { version, statuses, tags, users };
}

const versionOf = (company: unknown): number => StoredCompany.parse(company).dictionaryVersion ?? 0;

/** Raises the version. Belongs into the transaction of every write of a status, tag or user. */
export const namesChange = (companyId: number): Write[] => [
  { update: keys.company(companyId), change: { add: { dictionaryVersion: 1 } } },
  namesChangeInHead(companyId),
];

function keep<T extends { id: number }>(into: Map<number, T>, entry: T): void {
  into.set(entry.id, entry);
}

type Source = Pick<ApiContext, "table" | "clock">;

interface Cached {
  readonly dictionary: Dictionary;
  /** Time of the read, in milliseconds since the epoch. */
  readonly at: number;
}

/** A dictionary of a thousand users takes about 300 KB. */
const CACHED_COMPANIES = 50;

/** By company, oldest read first. */
const caches = new WeakMap<Table, Map<number, Cached>>();

/** The cached dictionary if it is less than a minute old. Its version is not checked: the caller must do that. */
export async function recentDictionary(source: Source, companyId: number): Promise<Dictionary> {
  const found = cacheOf(source.table).get(companyId);
  if (found !== undefined && source.clock.now() - found.at < limits.dictionaryCacheMs) return found.dictionary;
  return freshDictionary(source, companyId);
}

/** The dictionary as it is now. Reads only the version if the cached dictionary is still current: one read unit. */
export async function currentDictionary(source: Source, companyId: number): Promise<Dictionary> {
  const cached = cacheOf(source.table).get(companyId)?.dictionary;
  if (cached === undefined) return freshDictionary(source, companyId);
  const version = versionOf(await source.table.get(keys.company(companyId)));
  return version === cached.version ? cached : freshDictionary(source, companyId);
}

/** Reads the dictionary by one Query and caches it. */
export async function freshDictionary({ table, clock }: Source, companyId: number): Promise<Dictionary> {
  const at = clock.now();
  const dictionary = await loadDictionary(table, companyId);
  const cache = cacheOf(table);
  cache.delete(companyId);
  cache.set(companyId, { dictionary, at });
  for (const oldest of cache.keys()) {
    if (cache.size <= CACHED_COMPANIES) break;
    cache.delete(oldest);
  }
  return dictionary;
}

export function forgetDictionary({ table }: Source, companyId: number): void {
  cacheOf(table).delete(companyId);
}

function cacheOf(table: Table): Map<number, Cached> {
  const cache = caches.get(table) ?? new Map<number, Cached>();
  caches.set(table, cache);
  return cache;
}
