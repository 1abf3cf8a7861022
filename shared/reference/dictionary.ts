/** The dictionary of a company: its statuses, tags and users. It is cached, and each change raises its version. */
import { StoredUser } from "#shared/auth/user-schema.ts";
import { cachePerTable } from "#shared/cache.ts";
import type { SharedChange } from "#shared/company-index/change-log.ts";
import { namesChangeInHead } from "#shared/company-index/manifest.ts";
import { sharedDelta } from "#shared/company-index/write/entries.ts";
import type { ReadContext } from "#shared/context.ts";
import { any, equals, missing, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import * as limits from "#shared/limits.ts";
import { StoredCompany, StoredStatus, StoredTag } from "#shared/reference/schema.ts";

export interface Dictionary {
  /** The entries are at least as new as this version. */
  readonly version: number;
  readonly statuses: ReadonlyMap<number, StoredStatus>;
  readonly tags: ReadonlyMap<number, StoredTag>;
  readonly users: ReadonlyMap<number, StoredUser>;
}

/** The Query returns the row with the version first, so all entries, which follow, are at least as new as this version. */
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

/** Add these writes to each transaction that changes a status, tag or user. They also put the `changes` into the change log. */
export const namesChange = (companyId: number, ...changes: readonly SharedChange[]): Write[] => [
  raiseVersion(companyId),
  ...loggedNamesChange(companyId, changes),
];

/** Like `namesChange`, but fails if the dictionary has changed, because concurrent requests could exceed the maximum number of entries. */
export const namesChangeAfter = (
  { version }: Dictionary,
  companyId: number,
  ...changes: readonly SharedChange[]
): Write[] => {
  const isSame = equals("dictionaryVersion", version);
  const when = version === 0 ? any(missing("dictionaryVersion"), isSame) : isSame;
  return [{ ...raiseVersion(companyId), when }, ...loggedNamesChange(companyId, changes)];
};

const raiseVersion = (companyId: number) => ({
  update: keys.company(companyId),
  change: { add: { dictionaryVersion: 1 } },
});

const loggedNamesChange = (companyId: number, changes: readonly SharedChange[]): Write[] => [
  namesChangeInHead(companyId),
  ...changes.map((change) => sharedDelta(companyId, change)),
];

type NamedRecord = StoredStatus | StoredTag | Omit<StoredUser, "sub">;

/** `renames` counts the changes that other records show. It is part of the versions of these records (record-version.ts). */
export const nextVersion = <Row extends NamedRecord>(current: NamedRecord, next: Row): Row => ({
  ...next,
  version: current.version + 1,
  ...(shownElsewhere(current) !== shownElsewhere(next) && { renames: (current.renames ?? 0) + 1 }),
});

export const creationOf = ({ type: kind, id, version }: NamedRecord): SharedChange => ({
  ...{ kind, id, version },
  isDeleted: false,
  isShownElsewhere: false,
});

/** The entry of the change log. `isShownElsewhere` is true if other records show the changed field, such as the name of a user. */
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
  /** The dictionary for all writes of one request. If it is set, `currentDictionary` returns it and does not read the version again. */
  readonly dictionary?: Dictionary | undefined;
}

interface Cached {
  readonly dictionary: Dictionary;
  /** The time of the read, in milliseconds since 1970. */
  readonly at: number;
}

const ENTRY_BYTES = 300;
const dictionaries = cachePerTable<Cached>({
  maxBytes: 16_000_000,
  bytesOf: ({ dictionary: { statuses, tags, users } }) => ENTRY_BYTES * (1 + statuses.size + tags.size + users.size),
});

/** Returns a dictionary that is at most a minute old. A writer must check its version, for example by a condition of the transaction. */
export async function recentDictionary(source: Source, companyId: number): Promise<Dictionary> {
  const found = dictionaries(source.table).get(companyId)?.value;
  if (found !== undefined && source.clock.now() - found.at < limits.dictionaryCacheMs) return found.dictionary;
  return freshDictionary(source, companyId);
}

/** Returns a dictionary of at least this version. Reads the table only if the cached one is older. */
export async function dictionaryAtLeast(source: Source, companyId: number, version: number): Promise<Dictionary> {
  const cached = dictionaries(source.table).get(companyId);
  return cached !== undefined && cached.version >= version
    ? cached.value.dictionary
    : freshDictionary(source, companyId);
}

/** Returns the newest dictionary. Always reads its version, and reads the rest only if this version is not cached. */
export async function currentDictionary(source: Source, companyId: number): Promise<Dictionary> {
  if (source.dictionary !== undefined) return source.dictionary;
  const cached = dictionaries(source.table).get(companyId);
  if (cached === undefined) return freshDictionary(source, companyId);
  const version = versionOf(await source.table.get(keys.company(companyId)));
  return version === cached.version ? cached.value.dictionary : freshDictionary(source, companyId);
}

export async function freshDictionary({ table, clock }: Source, companyId: number): Promise<Dictionary> {
  const at = clock.now();
  const dictionary = await loadDictionary(table, companyId);
  dictionaries(table).set(companyId, dictionary.version, { dictionary, at });
  return dictionary;
}

export const forgetDictionary = ({ table }: Source, companyId: number): void => dictionaries(table).delete(companyId);
