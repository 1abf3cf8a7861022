/**
 * The dictionary of a company: its statuses, tags and users. One Query reads all of them, and a warm function caches them. Each change of
 * a status, tag or user raises the dictionary's version, so a cached dictionary is valid as long as its version is current.
 */
import { StoredUser } from "#shared/auth/user-schema.ts";
import type { SharedChange } from "#shared/company-index/change-log.ts";
import { namesChangeInHead } from "#shared/company-index/manifest.ts";
import { sharedDelta } from "#shared/company-index/write/entries.ts";
import type { ReadContext } from "#shared/context.ts";
import { any, equals, missing, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import type { ConditionFailed } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { StoredCompany, StoredStatus, StoredTag } from "#shared/reference/schema.ts";

export interface Dictionary {
  /** Number of changes of statuses, tags and users so far. The entries of this dictionary are at least as new as this version. */
  readonly version: number;
  readonly statuses: ReadonlyMap<number, StoredStatus>;
  readonly tags: ReadonlyMap<number, StoredTag>;
  readonly users: ReadonlyMap<number, StoredUser>;
}

/**
 * Reads the dictionary. The Query returns the company's row with the version before the entries. Each entry is therefore at least as new as
 * the version.
 */
export async function loadDictionary(table: Reads, companyId: number): Promise<Dictionary> {
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

/**
 * Returns the writes that raise the version of the company's dictionary. Add them to each transaction that changes a status, tag or user,
 * so that cached dictionaries become outdated. `changes` are the changed records, for the change log.
 */
export const namesChange = (companyId: number, ...changes: readonly SharedChange[]): Write[] => [
  raiseVersion(companyId),
  ...loggedNamesChange(companyId, changes),
];

/**
 * Returns the same writes as `namesChange`. The first write fails if the dictionary has changed since `dictionary` was read. A limit on the
 * number of entries needs this condition: without it, concurrent requests would all find that there is room for one more entry.
 */
export const namesChangeAfter = (
  { version }: Dictionary,
  companyId: number,
  ...changes: readonly SharedChange[]
): Write[] => {
  const isSame = equals("dictionaryVersion", version);
  const when = version === 0 ? any(missing("dictionaryVersion"), isSame) : isSame;
  return [{ ...raiseVersion(companyId), when }, ...loggedNamesChange(companyId, changes)];
};

/** Returns true if the first write of a transaction has failed. In the transaction, the writes of `namesChangeAfter` must be the first. */
export const hasDictionaryChanged = ({ failed }: ConditionFailed): boolean => failed.some(({ index }) => index === 0);

const raiseVersion = (companyId: number) => ({
  update: keys.company(companyId),
  change: { add: { dictionaryVersion: 1 } },
});

const loggedNamesChange = (companyId: number, changes: readonly SharedChange[]): Write[] => [
  namesChangeInHead(companyId),
  ...changes.map((change) => sharedDelta(companyId, change)),
];

type NamedRecord = StoredStatus | StoredTag | StoredUser;

/** Returns the entry of the change log for a new status, tag or user. */
export const creationOf = ({ type: kind, id, version }: NamedRecord): SharedChange => ({
  ...{ kind, id, version },
  isDeleted: false,
  isShownElsewhere: false,
});

/**
 * Returns the entry of the change log for a changed status, tag or user. `isShownElsewhere` is true if other records show the changed
 * field: the name of a user, or the value or colour of a status or tag.
 */
export const changeOf = (before: NamedRecord, after: NamedRecord): SharedChange => ({
  ...creationOf(after),
  isShownElsewhere: shownElsewhere(before) !== shownElsewhere(after),
});

const shownElsewhere = (record: NamedRecord): string =>
  JSON.stringify(record.type === "user" ? [record.firstName, record.lastName] : [record.value, record.color]);

function keep<T extends { id: number }>(into: Map<number, T>, entry: T): void {
  into.set(entry.id, entry);
}

interface Source extends Pick<ReadContext, "table" | "clock"> {
  /**
   * The dictionary of a request that makes many writes. It was current when the request began. All writes of the request use it, so that
   * they need not read the version again.
   */
  readonly dictionary?: Dictionary | undefined;
}

interface Cached {
  readonly dictionary: Dictionary;
  /** The time at which the dictionary was read, in milliseconds since 1970. */
  readonly at: number;
}

/**
 * Maximum number of companies in the cache. The dictionary of a company with a thousand users is about 300 KB large, so 50 such companies
 * need about 15 MB.
 */
const CACHED_COMPANIES = 50;

const caches = new WeakMap<Reads, Map<number, Cached>>();

/**
 * Returns a cached dictionary that is less than a minute old, or reads it from the table. The caller must check that its version is still
 * current, for example by a condition of the transaction.
 */
export async function recentDictionary(source: Source, companyId: number): Promise<Dictionary> {
  const found = cacheOf(source.table).get(companyId);
  if (found !== undefined && source.clock.now() - found.at < limits.dictionaryCacheMs) return found.dictionary;
  return freshDictionary(source, companyId);
}

/** Returns a dictionary of this version or a later one. The table is read only if the cached one is older. */
export async function dictionaryAtLeast(source: Source, companyId: number, version: number): Promise<Dictionary> {
  const cached = cacheOf(source.table).get(companyId)?.dictionary;
  return cached !== undefined && cached.version >= version ? cached : freshDictionary(source, companyId);
}

/**
 * Returns `source.dictionary` if it is set, and otherwise the current dictionary. If the current one is cached, only the version is read,
 * which costs one read unit.
 */
export async function currentDictionary(source: Source, companyId: number): Promise<Dictionary> {
  if (source.dictionary !== undefined) return source.dictionary;
  const cached = cacheOf(source.table).get(companyId)?.dictionary;
  if (cached === undefined) return freshDictionary(source, companyId);
  const version = versionOf(await source.table.get(keys.company(companyId)));
  return version === cached.version ? cached : freshDictionary(source, companyId);
}

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

function cacheOf(table: Reads): Map<number, Cached> {
  const cache = caches.get(table) ?? new Map<number, Cached>();
  caches.set(table, cache);
  return cache;
}
