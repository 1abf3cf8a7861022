/**
 * The dictionary of a company contains its statuses, tags and users. One Query reads it, and a warm function caches it.
 *
 * Every change of a status, tag or user raises the version of the dictionary. A cached dictionary is valid only while its version is
 * current.
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
  /** Number of changes of statuses, tags and users so far. The entries may also come from a later version. */
  readonly version: number;
  readonly statuses: ReadonlyMap<number, StoredStatus>;
  readonly tags: ReadonlyMap<number, StoredTag>;
  readonly users: ReadonlyMap<number, StoredUser>;
}

/**
 * Reads the dictionary. The company's row has the version and comes first in key order, so every entry is read after the version and is
 * never older than the version.
 */
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

/** Raises the version of the dictionary. These writes belong to the transaction of every write of a status, tag or user. */
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

/** Most companies in the cache, which bounds its memory. A dictionary of a thousand users takes about 300 KB. */
const CACHED_COMPANIES = 50;

/** Cached dictionaries by company, oldest read first. */
const caches = new WeakMap<Table, Map<number, Cached>>();

/**
 * Returns the cached dictionary if it is less than a minute old, otherwise reads it. Does not check the version, so the caller must check
 * it.
 */
export async function recentDictionary(source: Source, companyId: number): Promise<Dictionary> {
  const found = cacheOf(source.table).get(companyId);
  if (found !== undefined && source.clock.now() - found.at < limits.dictionaryCacheMs) return found.dictionary;
  return freshDictionary(source, companyId);
}

/** Returns the current dictionary. If the cached dictionary is still current, reads only the version, which costs one read unit. */
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
